import { describe, expect, it } from "vitest"
import type { Episode } from "../../src/rollout/episode.ts"
import type { HookContext, RolloutHooks, SampledTurn } from "../../src/rollout/hooks.ts"
import { type Rollout, rollout } from "../../src/rollout/rollout.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { FakePolicy } from "./fake-policy.ts"
import { type DoorsSetup, rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

const tokenizer = useTokenizer()

type Hooks = RolloutHooks<DoorsTask>

async function play(hooks: Hooks, changes: Partial<DoorsSetup> = {}): Promise<Rollout<DoorsTask>> {
  return await rollout(rolloutSetup(tokenizer.get(), { hooks, ...changes }))
}

const episodes = ({ groups }: Rollout<DoorsTask>): Episode[] => groups.flatMap((group) => group.episodes)
const texts = (episode: Episode): string => episode.steps.map(({ text }) => text).join("")
const actionOf = { red: "a", green: "b", blue: "c" } as const

/** Every hook at once, each with decisions of its own random numbers. */
const everything: Hooks = {
  start: (task, { random }) => ({
    maxSteps: 1 + random.below(2),
    replay: random.below(2) === 0 ? [actionOf[task.rooms[0]!]] : [],
    hint: `hint ${random.below(10)}`,
  }),
  onTurn: async (_turn, { random }) => ({ kind: random.below(2) === 0 ? "accept" : "resample" }),
  score: async ({ episodes }, { random }) =>
    episodes.map((episode) => ({
      ...episode,
      steps: episode.steps.map((step) => ({ ...step, reward: random.uniform() })),
    })),
  keep: (_group, { random }) => random.below(3) > 0,
}

describe("hooks", () => {
  it.each([1, 7, 64])("decide the same with concurrency %i as with 16", async (concurrency) => {
    const changes = { tasks: takeDoors(40), groups: 10 }
    const expected = await play(everything, changes)
    expect(expected.groups).toHaveLength(10)
    expect(expected.dropped.length).toBeGreaterThan(0)
    expect(await play(everything, { ...changes, concurrency })).toEqual(expected)
  })

  it("without decisions have no effect", async () => {
    const idle: Hooks = {
      start: () => undefined,
      onTurn: () => ({ kind: "accept" }),
      score: ({ episodes }) => episodes,
      keep: () => true,
    }
    expect(await play(idle)).toEqual(await play({}))
  })

  it("receive the progress, a signal, and separate random generators", async () => {
    const progress = { iteration: 3, iterations: 9 }
    const keys: string[] = []
    const note = <Answer>(context: HookContext, answer: Answer): Answer => {
      expect(context.progress).toBe(progress)
      expect(context.signal.aborted).toBe(false)
      keys.push(context.random.key.join())
      return answer
    }
    await play(
      {
        start: (_task, context) => note(context, undefined),
        onTurn: (_turn, context) => note(context, { kind: "accept" }),
        score: (group, context) => note(context, group.episodes),
        keep: (_group, context) => note(context, true),
      },
      { progress },
    )
    expect(keys.length).toBeGreaterThan(4 * 4 * 2 + 4 * 2)
    expect(new Set(keys).size).toBe(keys.length)
  })
})

describe("start", () => {
  const endless = doorsEnvironment({
    step: async (_action, episode) => ({ ...(await episode.step("wait")), terminated: false }),
  })

  it("sets the step limit of an episode", async () => {
    const changed = await play({ start: ({ index }) => ({ maxSteps: index + 1 }) }, { environment: endless })
    for (const { index, episodes } of changed.groups)
      for (const episode of episodes)
        expect(episode).toMatchObject({ outcome: "truncated", steps: { length: index + 1 } })
  })

  it("takes actions before the policy plays, which are history but not steps", async () => {
    const replay = ({ rooms }: DoorsTask) => rooms.slice(0, 2).map((room) => actionOf[room])
    const environment = doorsEnvironment({
      prompt: (task, history, now) => {
        expect(history.map(({ action }) => action)).toEqual(replay(task))
        expect(history.map(({ completion }) => completion)).toEqual(replay(task))
        return [{ role: "user", content: now.text }]
      },
    })
    const changed = await play({ start: (task) => ({ replay: replay(task), maxSteps: 1 }) }, { environment })
    for (const episode of episodes(changed)) {
      expect(episode.steps).toHaveLength(1)
      expect(episode.steps[0]!.observation.text).toMatch(/^\w+ 2$/)
      expect(episode.outcome).toBe("terminated")
      expect(episode.return).toBe(episode.steps[0]!.reward)
    }
    // The first reply has the key that it has without a replay.
    const plain = await play({})
    expect(episodes(changed).map((episode) => episode.steps[0]!.text)).toEqual(
      episodes(plain).map((episode) => episode.steps[0]!.text),
    )
  })

  it("can replay an episode to its end, without steps", async () => {
    const changed = await play({ start: ({ rooms }) => ({ replay: rooms.map((room) => actionOf[room]) }) })
    for (const episode of episodes(changed))
      expect(episode).toMatchObject({ outcome: "terminated", steps: [], return: 0, metrics: { success: 1 } })
  })

  it("adds a hint to the last message of every prompt", async () => {
    const changed = await play({ start: () => ({ hint: "Try a." }) })
    for (const { prompt, observation } of episodes(changed).flatMap(({ steps }) => steps))
      expect(tokenizer.get().decode(prompt)).toContain(`<|im_start|>user\n${observation.text}\n\nTry a.<|im_end|>`)
  })
})

describe("onTurn", () => {
  it("resamples completions until one is accepted", async () => {
    const changed = await play(
      {
        onTurn: ({ observation, parsed }) => {
          const right = actionOf[observation.text.split(" ")[0] as keyof typeof actionOf] === parsed.action
          return { kind: right ? "accept" : "resample" }
        },
      },
      { maxResamples: 50 },
    )
    for (const episode of episodes(changed)) expect(episode).toMatchObject({ return: 3, metrics: { success: 1 } })
  })

  it.each([0, 1, 2])("rejects at most %i completions, and the next one is accepted", async (resamples) => {
    const turns: SampledTurn<DoorsTask>[] = []
    const setup = {
      policy: new FakePolicy(tokenizer.get()),
      concurrency: 1,
      groupSize: 1,
      tasks: takeDoors(1),
      maxResamples: resamples,
    }
    const onTurn: Hooks["onTurn"] = (turn) => {
      turns.push(turn)
      return { kind: "resample" }
    }
    const [episode] = episodes(await play({ onTurn }, setup))
    const { length } = episode!.steps
    expect(turns.map(({ index, attempt }) => [index, attempt])).toEqual(
      Array.from({ length: length * (resamples + 1) }, (_, call) => [
        Math.floor(call / (resamples + 1)),
        call % (resamples + 1),
      ]),
    )
    const taken = turns.filter(({ attempt }) => attempt === resamples)
    expect(texts(episode!)).toBe(taken.map(({ text }) => text).join(""))
    expect(setup.policy.keys.size).toBe(turns.length)
    expect(taken.map(({ completion }) => completion.tokens)).toEqual(episode!.steps.map(({ completion }) => completion))
    for (const { history, index, messages, observation, task } of turns) {
      expect(history).toHaveLength(index)
      expect([messages, task.index]).toEqual([[{ role: "user", content: observation.text }], 0])
    }
  })

  it("can be asynchronous, and is not awaited after an abort", async () => {
    const controller = new AbortController()
    const reason = new Error("Ctrl-C")
    const onTurn = () => new Promise<never>(() => setTimeout(() => controller.abort(reason), 5))
    await expect(play({ onTurn }, { signal: controller.signal })).rejects.toBe(reason)
  })
})

describe("score", () => {
  it("replaces rewards, and returns follow", async () => {
    const { groups } = await play({
      score: async ({ episodes }) =>
        episodes.map((episode, rank) => ({
          ...episode,
          steps: episode.steps.map((step) => ({ ...step, reward: rank / 4 })),
          ...(rank === 0 && { outcome: "excluded" as const }),
        })),
    })
    for (const { episodes } of groups)
      for (const [rank, { steps, outcome, return: sum }] of episodes.entries()) {
        expect(sum).toBe((rank / 4) * steps.length)
        expect(outcome === "excluded").toBe(rank === 0)
      }
  })

  it("is called when all groups are complete, in order and concurrently", async () => {
    const log: string[] = []
    let ended = 0
    await play(
      {
        score: async ({ episodes, index }) => {
          expect(ended).toBe(16)
          log.push(`begin ${index}`)
          await new Promise((resolve) => setTimeout(resolve, 20 - 5 * index))
          log.push(`end ${index}`)
          return episodes
        },
        keep: ({ index }) => log.push(`keep ${index}`) > 0,
      },
      { onEpisode: () => ended++ },
    )
    expect(log.slice(0, 4)).toEqual(["begin 0", "begin 1", "begin 2", "begin 3"])
    expect(log.slice(8)).toEqual(["keep 0", "keep 1", "keep 2", "keep 3"])
  })
})

describe("keep", () => {
  const odd = { keep: ({ task }: { task: DoorsTask }) => task.index % 2 === 1 }
  const indices = (groups: Rollout<DoorsTask>["groups"]) => groups.map(({ index }) => index)

  it("drops groups, which are replaced by further tasks in rounds", async () => {
    const totals: [number, number][] = []
    const onEpisode = (...progress: [number, number]) => totals.push(progress)
    const { groups, dropped } = await play(odd, { tasks: takeDoors(40), groups: 5, maxRefillRounds: 9, onEpisode })
    // 0 to 4, then 5 to 7, then 8, then 9
    expect(indices(groups)).toEqual([1, 3, 5, 7, 9])
    expect(indices(dropped)).toEqual([0, 2, 4, 6, 8])
    expect(groups.map(({ task }) => task.index)).toEqual(indices(groups))
    expect(totals.at(19)).toEqual([20, 20])
    expect(totals.at(20)).toEqual([21, 32])
    expect(totals.at(-1)).toEqual([40, 40])
  })

  it("keys episodes by the index of their task, whatever was dropped", async () => {
    const tasks = takeDoors(10)
    const all = (await play({}, { tasks })).groups
    const { groups } = await play(odd, { tasks, groups: 5 })
    for (const { index, episodes } of groups) expect(episodes).toEqual(all[index]!.episodes)
  })

  it.each([
    [0, [1, 3]],
    [1, [1, 3, 5, 7]],
    [2, [1, 3, 5, 7]],
    [3, [1, 3, 5, 7, 9]],
  ])("gives up after %i refills, with the groups there are", async (refills, expected) => {
    expect(indices((await play(odd, { tasks: takeDoors(40), groups: 5, maxRefillRounds: refills })).groups)).toEqual(
      expected,
    )
  })

  it("ends when there are no more tasks", async () => {
    const { groups, dropped } = await play(
      { keep: () => false },
      { tasks: takeDoors(7), groups: 4, maxRefillRounds: 100 },
    )
    expect([groups, indices(dropped)]).toEqual([[], [0, 1, 2, 3, 4, 5, 6]])
    expect(await play(odd, { tasks: takeDoors(4) })).toMatchObject({ groups: [{ index: 1 }, { index: 3 }] })
  })

  it("receives groups as changed by score", async () => {
    const { groups } = await play({
      score: ({ episodes, index }) =>
        episodes.map((episode) => ({
          ...episode,
          steps: episode.steps.map((step) => ({ ...step, reward: index })),
        })),
      keep: ({ episodes }) => episodes.every(({ return: sum }) => sum > 0),
    })
    expect(indices(groups)).toEqual([1, 2, 3])
  })
})

describe("a hook that fails ends the rollout", () => {
  const names = ["start", "onTurn", "score", "keep"] as const

  it.each(names)("%s, if it throws, with its name", async (name) => {
    let [started, disposed] = [0, 0]
    const sound = doorsEnvironment({
      dispose: async () => {
        disposed++
      },
    })
    const environment: typeof sound = {
      ...sound,
      start(...args) {
        started++
        return sound.start(...args)
      },
    }
    const cause = new Error("boom")
    const raise = () => {
      throw cause
    }
    for (const fail of [async () => raise(), raise])
      await expect(play({ [name]: fail }, { environment })).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
        message: `hooks.${name} threw: boom`,
        cause,
      })
    expect(disposed).toBe(started)
    const own = new GigpoError("BAD_DATA", "no judge")
    await expect(play({ [name]: () => Promise.reject(own) })).rejects.toBe(own)
  })

  const step =
    (change: object): Hooks["score"] =>
    ({ episodes }) =>
      episodes.map((episode) => ({ ...episode, steps: episode.steps.map((one) => ({ ...one, ...change })) }))
  const one =
    (change: object): Hooks["score"] =>
    ({ episodes }) =>
      episodes.map((episode, index) => (index === 2 ? { ...episode, ...change } : episode))

  it.each<[string, object, RegExp]>([
    ["start", { start: () => null }, /hooks.start gave null; give an object/],
    ["start", { start: () => ({ maxSteps: 0 }) }, /hooks.start gave maxSteps as 0; it must be an integer/],
    ["start", { start: () => ({ replay: "up" }) }, /hooks.start gave a replay that is not a list/],
    ["start", { start: () => ({ replay: [1] }) }, /a list of actions, each a string/],
    [
      "start",
      { start: () => ({ maxStep: 3 }) },
      /hooks.start gave an object in which "maxStep" is not known \(did you mean "maxSteps"\?\)/,
    ],
    ["start", { start: () => ({ hint: 3 }) }, /hooks.start gave the hint 3; it must be a string/],
    ["onTurn", { onTurn: () => undefined }, /hooks.onTurn decided undefined; give { kind: "accept" }/],
    ["onTurn", { onTurn: () => ({ kind: "branch" }) }, /hooks.onTurn decided { kind: 'branch' }/],
    ["score", { score: () => undefined }, /hooks.score gave undefined for task 0; give all 4, in their order/],
    ["score", { score: () => [] }, /hooks.score gave 0 episodes for task 0/],
    ["score", { score: step({ reward: Number.NaN }) }, /bad episode 0 for task 0: rewards must be finite .* gave NaN/],
    ["score", { score: step({ reward: 1e200 }) }, /rewards must be at most 1e\+100 in absolute value/],
    ["score", { score: step({ prompt: [1] }) }, /the token ids prompt and completion, each an Int32Array/],
    [
      "score",
      { score: step({ logProbs: new Float32Array() }) },
      /logProbs, a Float32Array of one number per completion token/,
    ],
    ["score", { score: step({ observation: {} }) }, /an observation with the strings text and anchor/],
    ["score", { score: step({ valid: 1 }) }, /the boolean valid/],
    ["score", { score: one({ steps: [] }) }, /bad episode 2 for task 0: it must have as many steps as before/],
    ["score", { score: one({ metrics: undefined }) }, /bad episode 2 for task 0: metrics must be an object of numbers/],
    ["score", { score: one({ metrics: { success: Number.NaN } }) }, /bad episode 2 .*but success is NaN/],
    [
      "score",
      { score: step({ completion: Int32Array.of(259, 1) }) },
      /token 259, outside the policy's vocabulary of 259/,
    ],
    ["score", { score: step({ temperature: 2 }) }, /at temperature 2, but the temperature of the rollout/],
    ["score", { score: one({ outcome: "won" }) }, /its outcome is 'won'; it must be one of terminated, /],
    ["keep", { keep: () => 1 }, /hooks.keep gave 1; it must give true or false/],
    ["keep", { keep: "yes" }, /hooks.keep must be a function/],
    ["onturn", { onturn: () => {} }, /In hooks "onturn" is not known \(did you mean "onTurn"\?\)/],
    ["state", { state: 1 }, /hooks.state must be a function/],
  ])("%s, that answers %o", async (_, hooks, message) => {
    await expect(play(hooks as Hooks)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
  })

  it.each(names)("%s, if it hangs, is not awaited after an abort", async (name) => {
    const controller = new AbortController()
    const reason = new Error("Ctrl-C")
    const hang = () => new Promise<never>(() => setTimeout(() => controller.abort(reason), 5))
    await expect(play({ [name]: hang }, { signal: controller.signal })).rejects.toBe(reason)
  })
})

it("rejects invalid numbers of a rollout", async () => {
  const refused = async (changes: object, message: RegExp) =>
    await expect(play({}, changes)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
  await refused({ maxResamples: -1 }, /maxResamples is -1; it must be an integer of at least 0/)
  await refused({ maxRefillRounds: 0.5 }, /maxRefillRounds is 0.5/)
  await refused({ groups: 0 }, /groups is 0/)
  await refused({ tasks: 3 }, /tasks must be a list, or a source/)
  await refused({ tasks: { next: () => 1 } }, /groups is missing/)
  await refused({ environment: undefined }, /environment and agentLoop are missing/)
})
