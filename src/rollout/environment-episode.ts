import { checkMessages, checkObservation, checkParsed, checkResult, playing } from "../environment/contract.ts"
import type { Environment, EnvironmentEpisode } from "../environment/environment.ts"
import { linkAbort } from "../util/linked-abort.ts"
import type { Random } from "../util/random.ts"
import type { Ask } from "./memory-calls.ts"
import { remember, withPast } from "./remember.ts"
import { withoutStrays } from "./stray-promises.ts"
import { withTimeLimit } from "./time-limit.ts"
import type { GuardedEpisode } from "./turns.ts"

export interface EnvironmentEpisodeSetup<Task> {
  /** Environment that is played. */
  readonly environment: Environment<Task>
  /** Task of the episode. */
  readonly task: Task
  /** Random numbers of the environment in this episode. */
  readonly random: Random
  /** Time limit of one call of the environment in seconds. */
  readonly environmentTimeout: number
  /** Answers the calls of the environment's memory. Left out if no policy plays. */
  readonly ask?: Ask | undefined
  /** Signal that aborts the episode. */
  readonly signal?: AbortSignal | undefined
}

/** Seconds that an environment has to clean up after an abort. */
const lastCall = 1

/**
 * Starts an episode of an environment behind a guard: calls have a time limit and end when the signal is aborted, and results are checked.
 * The episode is disposed of once in any case, also where it starts too late.
 */
export async function startEpisode<Task>(
  setup: EnvironmentEpisodeSetup<Task>,
): Promise<GuardedEpisode & AsyncDisposable> {
  const { environment, task, random, environmentTimeout, ask: sample, signal } = setup
  const contract = playing(environment.name)
  const controller = new AbortController()
  const unlink = linkAbort(signal, controller)
  const call = <T>(what: string, work: () => Promise<T>): Promise<T> =>
    withTimeLimit(`${environment.name}: ${what}`, environmentTimeout, controller.signal, work)

  let starting: Promise<EnvironmentEpisode> | undefined
  let episode: EnvironmentEpisode
  try {
    episode = await call("start()", () => {
      starting = (async () => await environment.start(task, { signal: controller.signal, random }))()
      return starting
    })
    checkObservation(contract, "start()", withoutStrays(episode?.first))
  } catch (error) {
    unlink()
    controller.abort()
    starting?.then((late) => late[Symbol.asyncDispose]?.()).catch(() => {})
    throw error
  }

  const context = { task, random: random.derive("memory"), signal: controller.signal, sample }
  const render = environment.memory && remember(environment.memory, context, contract)
  return {
    first: episode.first,
    async prompt(history, now) {
      controller.signal.throwIfAborted()
      const past = await render?.(history, now)
      const shown = past?.observation === undefined ? now : { ...now, text: past.observation }
      const messages = checkMessages(contract, withoutStrays(environment.prompt(task, history, shown)))
      return past ? withPast(messages, past) : messages
    },
    async parse(completion, now) {
      controller.signal.throwIfAborted() // the reply comes too late
      return checkParsed(contract, "parse()", withoutStrays(environment.parse(completion, now)))
    },
    step: async (action) =>
      checkResult(contract, withoutStrays(await call("step()", async () => await episode.step(action)))),
    // Errors and timeouts of the cleanup are ignored: the episode has ended in any case.
    async [Symbol.asyncDispose]() {
      unlink()
      controller.abort()
      const limit = signal?.aborted ? Math.min(lastCall, environmentTimeout) : environmentTimeout
      const running = signal?.aborted ? undefined : signal
      await withTimeLimit("dispose", limit, running, async () => await episode[Symbol.asyncDispose]?.()).catch(() => {})
    },
  }
}
