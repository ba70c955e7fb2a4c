import { isDeepStrictEqual } from "node:util"
import {
  checkMessages,
  checkObservation,
  checkParsed,
  checkResult,
  isText,
  reason,
  strictly,
} from "../environment/contract.ts"
import type { Environment, EnvironmentEpisode, Observation, StepResult } from "../environment/environment.ts"
import { patternText } from "../grammar/pattern.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { Random } from "../util/random.ts"
import type { CheckOptions } from "./check-environment.ts"
import { expertCompletions, randomActions } from "./choosers.ts"
import { unlessLate } from "./time-limit.ts"
import { type ActionSelector, type Choice, type GuardedEpisode, playTurns } from "./turns.ts"

const optionKeys: KeysOf<CheckOptions> = {
  seed: true,
  splits: true,
  tasks: true,
  steps: true,
  actions: true,
  timeLimit: true,
}

/** Tests an environment; see `checkEnvironment`. */
export async function checkRules<Task>(environment: Environment<Task>, options: CheckOptions = {}): Promise<void> {
  checkArguments("checkEnvironment", options, optionKeys)
  ensure(typeof environment === "object" && environment !== null, "it must be an object")
  const check: Check<Task> = {
    environment,
    random: new Random(options.seed ?? 1),
    steps: options.steps ?? 20,
    actions: options.actions ?? [],
    call: (what, act) => within(options.timeLimit ?? 10_000, what, act),
  }
  ensure(isText(environment.name), "name must be a non-empty string")
  for (const split of options.splits ?? ["train", "test"]) {
    const tasks = await checkTasks(check, split, options.tasks ?? 3)
    for (const [index, task] of tasks.entries()) {
      const first = await checkGroup(check, task, index)
      if (index > 0) continue
      await checkParse(check, task, first)
      await checkAbort(check, task)
    }
  }
}

interface Check<Task> {
  readonly environment: Environment<Task>
  readonly random: Random
  readonly steps: number
  readonly actions: readonly string[]
  /** Calls the environment. An error or a call beyond the time limit breaks a rule. */
  readonly call: <T>(what: string, act: () => T | Promise<T>) => Promise<T>
}

async function checkTasks<Task>(check: Check<Task>, split: "train" | "test", count: number): Promise<Task[]> {
  const draw = () =>
    check.call(`tasks("${split}")`, () => {
      const tasks: Task[] = []
      for (const task of check.environment.tasks(split, new Random(check.random.key))) {
        tasks.push(task)
        if (tasks.length === count) break
      }
      return tasks
    })
  const tasks = await draw()
  ensure(tasks.length > 0, `tasks("${split}") must offer at least one task`)
  ensure(isDeepStrictEqual(tasks, await draw()), `tasks("${split}") must give the same tasks for the same random`)
  return tasks
}

/**
 * Checks that two members with equal random numbers have equal episodes, and that a member with other random numbers has the same start. The
 * episodes run at the same time, which reveals shared state.
 */
async function checkGroup<Task>(check: Check<Task>, task: Task, index: number): Promise<Observation> {
  const one = await play(check, task, index, 0)
  const [again, other] = await Promise.all([play(check, task, index, 0), play(check, task, index, 1)])
  for (const [i, record] of one.entries()) {
    const when = i === 0 ? "at the start" : `after step ${i}`
    ensure(
      isDeepStrictEqual(record, again[i]),
      `the same task and actions must give the same episode, but two episodes differ ${when} (do they share state?)`,
    )
  }
  ensure(isDeepStrictEqual(one[0], other[0]), "all members of a group must see the same first observation")
  return one[0].observation
}

type Transcript = [{ observation: Observation }, ...StepResult[]]

async function play<Task>(check: Check<Task>, task: Task, index: number, member: number): Promise<Transcript> {
  const choose = await chooser(check, task, index)
  return withEpisode(check, task, { member }, async (raw) => {
    const episode = guard(check, task, raw)
    const transcript: Transcript = [{ observation: episode.first }]
    for await (const { result } of playTurns(episode, choose, { maxTurns: check.steps })) transcript.push(result)
    return transcript
  })
}

/** Chooses actions: every second task is played by the expert, if there is one and while it returns completions; the others at random. */
async function chooser<Task>(
  { environment, ...check }: Check<Task>,
  task: Task,
  index: number,
): Promise<ActionSelector> {
  const atRandom = randomActions(check.random.derive("actions", index), check.actions)
  const expert = index % 2 === 0 ? await check.call("expert", () => environment.expert?.(task)) : undefined
  const advise = expertCompletions({
    complete: (now, history) => check.call("the expert", () => expert?.complete(now, history)),
  })
  return async (situation): Promise<Choice> => {
    await situation.messages()
    const advice = await advise(situation)
    if (advice === "stopped") return await atRandom(situation)
    ensure(advice.valid, "parse must find the expert's completions valid")
    const pattern = await check.call("completionPattern", () => environment.completionPattern?.(situation.now))
    if (pattern !== undefined) {
      await check.call("completionPattern", () => patternText(pattern))
      ensure(
        new RegExp(`^(?:${pattern})$`, "u").test(advice.text),
        `completionPattern must match the expert's completion ${shorten(advice.text)}, and does not: ${shorten(pattern)}`,
      )
    }
    return advice
  }
}

/** Plays an episode and checks all results. */
function guard<Task>({ environment, call }: Check<Task>, task: Task, episode: EnvironmentEpisode): GuardedEpisode {
  // Wrapped in objects, so that a promise, which is not allowed here, is not awaited.
  return {
    first: checkObservation(strictly, "start()", episode?.first),
    async prompt(history, now) {
      const { answer } = await call("prompt", () => ({ answer: environment.prompt(task, history, now) }))
      return checkMessages(strictly, answer)
    },
    async parse(completion, now) {
      const what = `parse(${shorten(completion)})`
      const { answer } = await call(what, () => ({ answer: environment.parse(completion, now) }))
      return checkParsed(strictly, what, answer)
    },
    step: async (action) => checkResult(strictly, await call("step", () => episode.step(action))),
  }
}

const nastyCompletions: readonly string[] = [
  "",
  " \n\t",
  "no tags at all",
  "<",
  "<action>",
  "</action>",
  "<action></action>",
  "</action><action>",
  "<action><action></action></action>",
  "<think><action></think>",
  "<ACTION>\u0000</ACTION>",
  "<action>__proto__</action>",
  "<action>$& \\1 %s {{}}</action>",
  "\ud800 lone surrogate \udfff",
  "İ<action>İ</action>",
  "{",
  '{"action": null}',
  "[[[[[",
  "思考<action>移动</action>",
  "<action>".repeat(10_000),
  "<think>".repeat(5_000) + "</think>".repeat(5_000),
  "a".repeat(100_000),
]

/** Checks that `step` accepts the actions that `parse` reads from garbage. */
async function checkParse<Task>(check: Check<Task>, task: Task, first: Observation): Promise<void> {
  for (const completion of nastyCompletions) {
    await withEpisode(check, task, {}, async (episode) => {
      const { action } = await guard(check, task, episode).parse(completion, first)
      const step = `step(${shorten(action)}), the action that parse read from ${shorten(completion)},`
      checkResult(strictly, await check.call(step, () => episode.step(action)))
    })
  }
}

function shorten(text: string): string {
  return JSON.stringify(text.slice(0, 40))
}

/** Checks that an abort ends a step in progress, and that no step or episode starts afterwards. */
async function checkAbort<Task>(check: Check<Task>, task: Task): Promise<void> {
  const { environment, call } = check
  const step = (episode: EnvironmentEpisode) =>
    settled(() => {
      const { first } = episode
      return episode.step(first.actions?.[0] ?? check.actions[0] ?? environment.parse("", first).action)
    })
  const inFlight = new AbortController()
  await withEpisode(check, task, { signal: inFlight.signal }, (episode) =>
    call("a step that is aborted in flight", () => {
      const pending = step(episode)
      inFlight.abort()
      return pending
    }),
  )
  const between = new AbortController()
  await withEpisode(check, task, { signal: between.signal }, async (episode) => {
    between.abort()
    const wentOn = await call("step after an abort", () => step(episode))
    ensure(!wentOn, "step must reject once the signal is aborted; start it with context.signal.throwIfAborted()")
  })
  const context = { signal: AbortSignal.abort(), random: check.random.derive("member", 0) }
  const started = await call("start with an aborted signal", () => settled(() => environment.start(task, context)))
  ensure(!started, "start must reject where the signal is aborted; start it with context.signal.throwIfAborted()")
}

/** Whether the promise was fulfilled. */
async function settled(act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act()
    return true
  } catch {
    return false
  }
}

/** Starts an episode, and disposes of it in any case. */
async function withEpisode<Task, Result>(
  check: Check<Task>,
  task: Task,
  { member = 0, signal = new AbortController().signal }: { member?: number; signal?: AbortSignal },
  use: (episode: EnvironmentEpisode) => Promise<Result>,
): Promise<Result> {
  const context = { signal, random: check.random.derive("member", member) }
  const episode = await check.call("start", () => check.environment.start(task, context))
  const dispose = async () => {
    const close = episode?.[Symbol.asyncDispose]
    if (close === undefined) return
    ensure(typeof close === "function", "[Symbol.asyncDispose] must be a function, or be left out")
    await check.call("[Symbol.asyncDispose]()", () => close.call(episode))
    await check.call("a second [Symbol.asyncDispose]()", () => close.call(episode))
  }
  try {
    const result = await use(episode)
    await dispose()
    return result
  } catch (error) {
    await settled(dispose)
    throw error
  }
}

async function within<T>(timeLimit: number, what: string, act: () => T | Promise<T>): Promise<T> {
  const tooLate = () => strictly.broken(`${what} must answer; it took more than ${timeLimit} ms`)
  const answer = async () => {
    try {
      return await act()
    } catch (cause) {
      throw strictly.broken(`${what} must not throw, but threw: ${reason(cause)}`, { cause })
    }
  }
  return await unlessLate(timeLimit, tooLate, answer)
}

function ensure(holds: boolean, rule: string): asserts holds {
  if (!holds) throw strictly.broken(rule)
}
