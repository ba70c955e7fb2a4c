import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Environment, PastStep } from "../../../src/environment/environment.ts"
import { beliefMemory } from "../../../src/environment/memory/beliefs.ts"
import { chunkMemory, cut } from "../../../src/environment/memory/chunks.ts"
import type { PromptMemory } from "../../../src/environment/memory/memory.ts"
import { planMemory } from "../../../src/environment/memory/plan.ts"
import { recentMemory } from "../../../src/environment/memory/recent.ts"
import { skillMemory } from "../../../src/environment/memory/skills.ts"
import { stateBlockMemory } from "../../../src/environment/memory/state.ts"
import { summaryMemory } from "../../../src/environment/memory/summary.ts"
import { sokoban } from "../../../src/environment/sokoban/sokoban.ts"
import { streamExpert } from "../../../src/rollout/expert.ts"
import { rollout } from "../../../src/rollout/rollout.ts"
import { takeTasks } from "../../../src/rollout/tasks.ts"
import { Run } from "../../../src/runs/run.ts"
import type { RunObserver } from "../../../src/training/observers.ts"
import { train } from "../../../src/training/train.ts"
import { GigpoError } from "../../../src/util/errors.ts"
import { Random } from "../../../src/util/random.ts"
import { TablePolicy } from "../../training/table-policy.ts"
import { tableSetup } from "../../training/table-setup.ts"
import { openDoors } from "../../training/tiny.ts"

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-memories-"))
})
afterAll(() => rm(folder, { recursive: true }))

const turn = (text: string, completion: string, action = completion): PastStep => ({
  observation: { text, anchor: text },
  completion,
  action,
})
const now = (text: string) => ({ text, anchor: text })

/** What it tells at each step of this past, with what it asks answered. */
async function tell(memory: PromptMemory, turns: readonly PastStep[], last = "now", answer = (_: string) => "") {
  const asked: string[] = []
  const episode = memory.start({
    task: 0,
    random: new Random(1),
    signal: new AbortController().signal,
    async sample(messages) {
      asked.push(messages.at(-1)!.content)
      return answer(asked.at(-1)!)
    },
  })
  const told = []
  for (let at = 0; at <= turns.length; at++)
    told.push(await episode.render(turns.slice(0, at), turns[at]?.observation ?? now(last)))
  return { told, asked }
}

/** Long enough for what memories ask. */
const roomy = () => Object.assign(new TablePolicy(), { maxPositions: 4000 })

const makers: Readonly<Record<string, () => PromptMemory>> = {
  recent: () => recentMemory({ history: 1 }),
  state: () => stateBlockMemory(),
  summary: () => summaryMemory({ maxTokens: 3 }),
  chunks: () => chunkMemory({ chunkSize: 4, maxTokens: 3 }),
  skills: () => skillMemory({ size: 4 }),
  plan: () => planMemory({ every: 1, maxTokens: 3 }),
  beliefs: () => beliefMemory(),
}

describe.each(Object.entries(makers))("the memory %s", (name, make) => {
  const options = { iterations: 4, groups: 3, groupSize: 4, stepsPerUpdate: 16, checkpointEvery: 1 }
  const setup = (concurrency: number) => {
    const environment = openDoors({ memory: make() }) as Environment
    const episodes: unknown[] = []
    const observer: RunObserver = { name: "all", episodes: (_, groups) => void episodes.push(groups) }
    const rollout = { maxCompletionTokens: 2, concurrency }
    return { ...tableSetup({ policy: roomy(), environment }), ...options, rollout, observers: [observer], episodes }
  }
  const play = async ({ episodes, ...whole }: ReturnType<typeof setup>) => {
    await train(whole)
    return { episodes, logits: whole.policy.logits, memory: whole.environment!.memory!.state?.() }
  }

  it("gives the same run with concurrency 1, 7 and 64, and after a resume", async () => {
    const expected = await play(setup(1))
    expect(await play(setup(7))).toEqual(expected)
    expect(await play(setup(64))).toEqual(expected)
    const directory = join(folder, name)
    for (const part of [1, 2]) {
      const { episodes: _, ...resumed } = setup(7)
      await using run = await Run.open(directory, {}, { resume: part === 2 })
      for await (const { iteration } of train({ ...resumed, run })) if (part === 1 && iteration === 2) break
      if (part === 1) continue
      expect(resumed.policy.logits).toEqual(expected.logits)
      expect(resumed.environment!.memory!.state?.()).toEqual(expected.memory)
    }
  })
})

describe("contents of memories", () => {
  it("recent: the last steps", async () => {
    const { told } = await tell(recentMemory({ history: 1 }), [turn("a", "x"), turn("b", "y")])
    expect(told).toEqual(["", "[Observation 1: 'a', Action 1: 'x']", "[Observation 2: 'b', Action 2: 'y']"])
  })

  it("state: only the last block", async () => {
    const { told } = await tell(stateBlockMemory({ maxCharacters: 4 }), [
      turn("a", "<state>door red</state>"),
      turn("b", "none"),
    ])
    expect(told[0]).not.toContain("wrote it last")
    for (const text of told.slice(1)) expect(text).toMatch(/last:\ndoor\n\n.*<state>/)
  })

  it("beliefs: an expectation next to its own action only", async () => {
    const completion = "<belief>it is red</belief><expect>it opens</expect>"
    const { told } = await tell(beliefMemory(), [turn("a", completion, "push"), turn("b", "no words", "pull")])
    expect(told[1]).toContain("You believed:\nit is red\n\nYou expected of your last action (push):\nit opens")
    expect(told[2]).toContain("it is red")
    expect(told[2]).not.toContain("it opens")
  })

  it("summary: includes new steps, and shows those not included yet", async () => {
    const turns = [turn("a", "x"), turn("b", "y"), turn("c", "z")]
    const { told, asked } = await tell(summaryMemory({ every: 2 }), turns, "d", () => "<think>so</think> went on")
    expect(asked).toHaveLength(1)
    expect(asked[0]).toContain("Observation 1: 'a'")
    expect(told.map(String)).toEqual([
      "",
      "Since then:\n[Observation 1: 'a', Action 1: 'x']",
      "Progress so far:\nwent on",
      "Progress so far:\nwent on\n\nSince then:\n[Observation 3: 'c', Action 3: 'z']",
    ])
  })

  it("plan: coarse at first, rewritten on request", async () => {
    const turns = [turn("a", "x"), turn("b", "<replan>"), turn("c", "y")]
    const { asked, told } = await tell(planMemory({ history: 0 }), turns, "d", (text) =>
      /coarse plan/.test(text) ? "A" : "B",
    )
    expect(asked).toHaveLength(2)
    expect(asked[1]).toContain("The plan so far:\nA")
    expect(told.map((text) => /Your plan:\n(.)/.exec(String(text))![1])).toEqual(["A", "A", "B", "B"])
  })

  it("chunks: reads all of a long text, once, and shows only the question", async () => {
    const text = `Who?\n\n${"one two three ".repeat(3)}`
    const { told, asked } = await tell(
      chunkMemory({ chunkSize: 14 }),
      [turn(text, "x")],
      text,
      (prompt) => `${prompt.length}`,
    )
    expect(asked).toHaveLength(3)
    expect(asked[1]).toContain(`Your notes so far:\n${asked[0]!.length}`)
    expect(told).toEqual(Array(2).fill({ past: `Your notes:\n${asked[2]!.length}`, observation: "Who?" }))
    expect(cut("ab cd efghij", 5)).toEqual(["ab cd", "efghi", "j"])
    expect(cut("😀😀😀", 2).join("")).toBe("😀😀😀")
  })

  it("skills: those that helped after the same start, until they do not", async () => {
    const bank = skillMemory({ topk: 1, size: 2 })
    const episode = (text: string, completion: string, success: number) => ({
      ...{ task: 0, turns: [turn(text, completion)], return: success, metrics: { success } },
    })
    bank.update!([
      episode("red room", "<skill>knock</skill>", 1),
      episode("blue hall", "run", 1),
      episode("x", "no", 0),
    ])
    const shown = async (text: string) => /\n1\. (.*)/.exec(String((await tell(bank, [], text)).told[0]))?.[1]
    expect([await shown("a red room"), await shown("the blue hall"), await shown("x")]).toEqual([
      "knock",
      "run",
      undefined,
    ])
    bank.update!([episode("red room", "a", 0), episode("red room", "b", 0), episode("green room", "wait", 1)])
    expect(bank.state!().json).toEqual([
      { about: "blue hall", text: "run", shown: 0, won: 0 },
      { about: "green room", text: "wait", shown: 0, won: 0 },
    ])
  })
})

describe("a memory that calls the policy", () => {
  const policy = roomy()
  const doors = (memory: PromptMemory) => openDoors({ memory }) as Environment
  const played = async (memory: PromptMemory, changes: object = {}) => {
    const { tokenizer } = tableSetup()
    const environment = doors(memory)
    const tasks = takeTasks(environment, "train", new Random(1), 2)
    const limits = { maxPositions: 4000, maxCompletionTokens: 2, maxSteps: 3, temperature: 1, environmentTimeout: 30 }
    const setup = { policy, tokenizer, environment, tasks, groupSize: 2, random: new Random(2), concurrency: 4 }
    return (await rollout({ ...setup, ...limits, ...changes })).groups.flatMap(({ episodes }) => episodes)
  }

  it("adds steps before the actions, which do not reach the environment", async () => {
    for (const { steps } of await played(planMemory({ maxTokens: 3 }))) {
      expect(steps[0]).toMatchObject({
        agent: "plan",
        reward: 0,
        observation: { anchor: expect.stringMatching(/^plan\n/) },
      })
      expect(steps.slice(1).every(({ agent }) => agent === undefined)).toBe(true)
      expect(steps[0]!.completion).toHaveLength(3)
    }
    for (const { steps } of await played(planMemory({ maxTokens: 3, learn: false })))
      expect(steps.every(({ agent }) => agent === undefined)).toBe(true)
  })

  it("ends the episode if a call does not fit, and the rollout if the policy fails", async () => {
    const outcomes = (await played(planMemory(), { maxPositions: 60 })).map(({ outcome }) => outcome)
    expect(outcomes).toEqual(Array(4).fill("overflow"))
    const broken = Object.assign(roomy(), { sample: () => Promise.reject(new GigpoError("DISPOSED", "gone")) })
    const deaf: PromptMemory = {
      name: "deaf",
      start: ({ sample }) => ({ render: async () => sample([{ role: "user", content: "?" }]).catch(() => "") }),
    }
    await expect(played(deaf, { policy: broken })).rejects.toThrow("gone")
  })

  it("cannot call an expert, who sees other memories", async () => {
    const steps = async (memory: PromptMemory) => {
      const environment = doors(memory)
      const [task] = takeTasks(environment, "train", new Random(1), 1)
      const setup = { environment, task, random: new Random(1), environmentTimeout: 30, maxSteps: 3 }
      const found = []
      for await (const { messages } of streamExpert(setup)) found.push(messages.at(-1)!.content)
      return found
    }
    await expect(steps(planMemory())).rejects.toThrow(
      /plan calls the policy, but no policy plays here: use a memory without calls/,
    )
    expect((await steps(recentMemory({ history: 1 })))[1] ?? "[Observation 1:").toMatch(/^\[Observation 1:/)
  })

  it("fails the episode if it returns no text", async () => {
    const wrong = { name: "wrong", start: () => ({ render: () => 7 as never }) }
    for (const { error } of await played(wrong))
      expect(error?.message).toMatch(/memory wrong returned 7; return a string/)
  })
})

it("a named memory precedes the prompt, and replaces the environment's history", () => {
  const environment = sokoban({ memory: { name: "state" }, history: 2, rules: false })
  expect(environment.memory?.name).toBe("state")
  const [task] = environment.tasks("train", new Random(1))
  expect(environment.prompt(task!, [turn("a", "x")], now("b"))).toEqual([{ role: "user", content: "b" }])
  expect(() => sokoban({ memory: { name: "state", maxCharacters: 0 } })).toThrow(/memory.maxCharacters must be/)
})
