import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { toBatch } from "../../../src/credit/batch.ts"
import type { Credit } from "../../../src/credit/estimator.ts"
import { gigpo } from "../../../src/credit/gigpo.ts"
import type { Group } from "../../../src/rollout/hooks.ts"
import { collectSteps } from "../../../src/training/steps.ts"
import { GigpoError } from "../../../src/util/errors.ts"
import { Random } from "../../../src/util/random.ts"
import { completionText } from "../../../src/view/data/recorded.ts"
import { readEpisodes, readGroup, readRecordedIterations } from "../../../src/view/record/read.ts"
import { recordEpisodes } from "../../../src/view/record/recorder.ts"
import { sentGroup } from "../../../src/view/serve/sent-group.ts"
import { episode } from "../../training/episodes.ts"
import { all } from "../../training/tiny.ts"
import { bytes, group, plainGroups, record, said, tokens } from "./groups.ts"

let run: string
beforeEach(async () => {
  run = await mkdtemp(join(tmpdir(), "gigpo-record-"))
})
afterEach(() => rm(run, { recursive: true }))

/** What is read of one iteration that was recorded. */
async function readBack(groups: readonly Group[], credit: Credit, minGroupSize = 1) {
  expect(await record(run, [[1, { groups, credit }]], { minGroupSize })).toEqual([])
  return await all(readEpisodes(run))
}

it("keeps what an estimator said of every step, with both levels, and reads it with its own steps", async () => {
  const won = episode([said("a", "one", "x", { reward: 0.5 }), said("b", "two", "y", { reward: 1 / 3 })])
  const lost = episode([said("a", "one", "z", { valid: false, finishReason: "length" }), said("c", "three", "y")], {
    outcome: "truncated",
    metrics: { success: 0, "success/far": 0 },
    last: { text: "the end", anchor: "d" },
  })
  const failed = episode([said("a", "one", "y"), said("q", "two", "y")], {
    outcome: "failed",
    error: new GigpoError("ENVIRONMENT_FAILED", "It broke."),
    attempt: 2,
  })
  const groups = [group(0, [failed, won, lost]), group(3, [lost, won], ["far", 1])]
  const steps = collectSteps(groups.map(({ episodes }) => episodes))
  const context = { progress: { iteration: 0, iterations: 1 }, random: new Random(0) }
  const credit = await gigpo().estimate(toBatch(steps), context)
  const { returns, episodeAdvantages, stepAdvantages, stepGroups } = credit.details!
  const [first, second] = await readBack(groups, credit)
  expect(first).toMatchObject({ iteration: 1, group: 0, task: { seed: 0 } })
  expect(second).toMatchObject({ iteration: 1, group: 3, task: ["far", 1] })
  const read = [...first!.episodes.slice(1), ...second!.episodes].flatMap((one) => one.steps)
  expect(read).toHaveLength(8)
  for (const [row, one] of read.entries()) {
    expect(one).toMatchObject({
      advantage: credit.advantages[row],
      discountedReturn: returns![row],
      episodeAdvantage: episodeAdvantages![row],
      stepAdvantage: stepAdvantages![row],
      stepGroup: stepGroups![row],
      observation: steps[row]!.record.observation.text,
      anchor: steps[row]!.anchor,
      reward: steps[row]!.reward,
      action: steps[row]!.record.action,
      valid: steps[row]!.valid,
      finishReason: steps[row]!.record.finishReason,
    })
    expect(completionText(one)).toBe(`${steps[row]!.record.action}<|end|>`)
    expect(one.logProbs).toEqual([...steps[row]!.record.logProbs])
    expect("entropies" in one || "skipped" in one).toBe(false)
  }
  const { steps: left, ...about } = first!.episodes[0]!
  expect(about).toEqual({ member: 0, outcome: "failed", return: 0, metrics: {}, error: "It broke.", attempt: 2 })
  for (const one of left) for (const key of ["advantage", "stepAdvantage"]) expect(one).not.toHaveProperty(key)
  // It stood where the others did, and where nobody else stood.
  expect(left.map(({ stepGroup }) => stepGroup)).toEqual([stepGroups![0], Math.max(...stepGroups!) + 1])
  const { steps: _, ...end } = first!.episodes[2]!
  expect(end).toEqual({
    member: 2,
    outcome: "truncated",
    return: 0,
    metrics: { success: 0, "success/far": 0 },
    last: { text: "the end", anchor: "d" },
  })
})

it("knows that dropped episodes and groups that are too small have no credit", async () => {
  const lone = (word: string) => episode([said("a", word, word)])
  const dropped = episode([said("a", "no", "no")], { outcome: "excluded" })
  const groups = [
    group(0, [dropped, lone("one")]),
    group(1, [lone("two"), dropped, lone("three")]),
    group(2, [dropped, dropped]),
    group(3, [lone("four"), lone("five")]),
  ]
  const read = await readBack(groups, { advantages: Float64Array.of(2, 3, 4, 5) }, 2)
  const earned = read.flatMap(({ episodes }) => episodes.map(({ steps: [one] }) => [one!.action, one!.advantage]))
  expect(earned).toEqual([
    ...[["no", undefined] as const, ["one", undefined] as const],
    ...[["two", 2] as const, ["no", undefined] as const, ["three", 3] as const],
    ...[["no", undefined] as const, ["no", undefined] as const],
    ...[["four", 4] as const, ["five", 5] as const],
  ])
})

it("keeps advantages of single tokens, entropies, and what was skipped; groups steps by anchors where nobody else does", async () => {
  const entropies = Float32Array.of(0.5, 0.25)
  const one = episode([said("a", "p", "x", { entropies } as object), said("b", "p", "y", { entropies } as object)])
  const other = episode([said("b", "p", "z"), said("a", "p", "w")])
  const credit = {
    // What is said of a step that is left out is nobody's, and of any length.
    advantages: [Float32Array.of(1, -2), new Float32Array(), Float32Array.of(3, -4), Float32Array.of(5, -6)],
    skip: Uint8Array.of(0, 1, 0, 0),
    details: { returns: Float64Array.of(1, Number.NaN, 2, 3) },
  }
  const [read] = await readBack([group(0, [one, other])], credit)
  const steps = read!.episodes.flatMap(({ steps }) => steps)
  expect(steps.map(({ advantage }) => advantage)).toEqual([[1, -2], undefined, [3, -4], [5, -6]])
  expect(steps.map(({ skipped }) => skipped)).toEqual([undefined, true, undefined, undefined])
  expect(steps.map((step) => step.entropies)).toEqual([[0.5, 0.25], [0.5, 0.25], undefined, undefined])
  expect(steps.map(({ stepGroup }) => stepGroup)).toEqual([0, 1, 1, 0])
  expect(steps.map(({ discountedReturn }) => discountedReturn)).toEqual([1, undefined, 2, 3])
  expect(steps[0]).not.toHaveProperty("stepAdvantage")
})

it("keeps the log-probabilities of the trainer of steps that it has read", async () => {
  const episodes = [episode([said("a", "p", "x"), said("b", "p", "y")]), episode([said("a", "p", "z")])]
  const failed = episode([said("a", "p", "w")], { outcome: "failed", error: new GigpoError("IO", "It broke.") })
  const groups = [group(0, [...episodes, failed])]
  const steps = collectSteps(groups.map(({ episodes }) => episodes)).map((step, index) => ({
    ...step,
    trainerLogProbs: Float32Array.of(-index - 0.5, index === 1 ? Number.NEGATIVE_INFINITY : -2),
  }))
  const observer = recordEpisodes({ tokenizer: bytes })
  await observer.start!({ iteration: 0, iterations: 1, directory: run })
  await observer.episodes!(1, groups, { advantages: new Float64Array(3) }, steps)
  await observer.end!({ iteration: 1 })
  const [read] = await all(readEpisodes(run))
  expect(read!.episodes.flatMap(({ steps }) => steps.map((step) => step.trainerLogProbs))).toEqual([
    [-0.5, -2],
    undefined, // not finite
    [-2.5, -2],
    undefined,
  ])
})

it("reads the tokens of some members only, with the same scale and the same steps otherwise", async () => {
  const entropies = Float32Array.of(0.5, 0.25)
  const episodes = ["x", "y", "z"].map((word) => episode([said("a", `look ${word}`, word, { entropies } as object)]))
  await record(run, [[1, { groups: [group(0, episodes)], credit: { advantages: Float64Array.of(1, -3, 2) } }]])
  const whole = (await readGroup(run, 1, 0))!
  const some = (await readGroup(run, 1, 0, "training", new Set([1])))!
  expect(some.episodes[1]).toEqual(whole.episodes[1])
  expect(some.episodes[2]!.steps[0]).toEqual({ ...whole.episodes[2]!.steps[0], prompt: "", completion: [] })
  const options = { round: (value: number) => value, members: new Set([1]) }
  expect(await sentGroup(some, options)).toEqual(await sentGroup(whole, options))
})

it("gives text where characters are of several tokens, are cut off, or are none", async () => {
  const smile = "a😀é"
  const cut = Int32Array.of(...tokens("é€").subarray(0, 4), 256)
  const wild = Int32Array.of(0xff, 0x41, 0xf0, 0x9f)
  const bare = (completion: Int32Array) => ({ completion, logProbs: new Float32Array(completion.length) })
  const steps = [
    said("a", smile, smile),
    said("a", `${smile}b`, "", bare(cut)),
    said("a", "\ufeffé", "", bare(wild)),
    said("a", "", "", bare(new Int32Array(0))),
  ]
  const [read] = await readBack([group(0, [episode(steps)])], { advantages: new Float64Array(4) })
  const [first, second, third, fourth] = read!.episodes[0]!.steps
  expect(first!.completion).toEqual(["a", "", "", "", "😀", "", "é", "<|end|>"])
  expect([first!.prompt, first!.promptTokens]).toEqual([smile, 7])
  expect(second!.prompt).toBe(`${smile}b`)
  expect(second!.completion).toEqual(["", "é", "", "", "\ufffd<|end|>"])
  expect(third!.prompt).toBe("\ufeffé")
  expect(third!.completion).toEqual(["\ufffd", "A", "", "\ufffd"])
  expect(fourth).toMatchObject({ prompt: "", promptTokens: 0, completion: [], logProbs: [] })
})

it("keeps conversations, agents and metrics of steps, and hostile texts as they are", async () => {
  const hostile = ["\ud800 alone", "</script><b>\u202e\n\u0000", "x".repeat(1_000_000), "__proto__", '"\\\u2028']
  const steps = hostile.map((text, at) =>
    said(text, "p", "r", {
      observation: { text, anchor: text },
      action: text,
      ...(at % 2 === 0 && { conversation: at, agent: String(at) }),
      ...(at === 1 && { metrics: { [text]: 0.5, nothing: Number.NaN } }),
    }),
  )
  const last = { text: hostile[0]!, anchor: hostile[1]! }
  const one = episode(steps, { last, metrics: { success: 1, none: Number.POSITIVE_INFINITY } })
  const task = { text: hostile[2], odd: 1n, lone: "\udfff" }
  const [read] = await readBack([group(0, [one], task)], { advantages: new Float64Array(5) })
  expect(read!.task).toEqual({ text: hostile[2], lone: "\udfff" })
  const [found] = read!.episodes
  expect(found).toMatchObject({ last, metrics: { success: 1 } })
  expect(found!.metrics).not.toHaveProperty("none")
  expect(found!.steps.map(({ observation }) => observation)).toEqual(hostile)
  expect(found!.steps.map(({ anchor }) => anchor)).toEqual(hostile)
  expect(found!.steps.map(({ action }) => action)).toEqual(hostile)
  expect(found!.steps.map(({ conversation }) => conversation)).toEqual([0, undefined, 2, undefined, 4])
  expect(found!.steps.map(({ agent }) => agent)).toEqual(["0", undefined, "2", undefined, "4"])
  expect(found!.steps.map(({ metrics }) => metrics)).toEqual([undefined, { [hostile[1]!]: 0.5 }, ...Array(3)])
  const [summary] = await readRecordedIterations(run)
  expect(summary!.tasks[0]).toHaveLength(200)
})

it("keeps tasks that JSON cannot hold as nothing", async () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const tasks = [circle, () => {}, undefined, 7n]
  const groups = tasks
    .map((task, index) => group(index, [], task))
    .map((one, index) => ({
      ...one,
      task: tasks[index],
      episodes: [episode([said("a", "p", "r")])],
    }))
  const read = await readBack(groups, { advantages: new Float64Array(4) })
  expect(read.map(({ task }) => task)).toEqual([null, null, null, null])
})

it("reads single groups and short accounts, also where a group is of several blocks", async () => {
  // Random bytes, so that no compressor makes few of them.
  const random = new Random(1)
  const long = () => said("a", "p", "r", { prompt: Int32Array.from({ length: 60_000 }, () => random.below(256)) })
  const big = Array.from({ length: 3 }, (_, index) =>
    group(
      index,
      Array.from({ length: 4 }, () => episode(Array.from({ length: 5 }, long))),
    ),
  )
  const advantages = Float64Array.from({ length: 60 }, (_, at) => at)
  const read = await readBack(big, { advantages })
  expect(read.map(({ episodes }) => episodes.map(({ member }) => member))).toEqual(Array(3).fill([0, 1, 2, 3]))
  expect(read.flatMap(({ episodes }) => episodes.flatMap(({ steps }) => steps.map((s) => s.advantage)))).toEqual([
    ...advantages,
  ])
  const prompts = (of: (typeof read)[number]) => of.episodes.flatMap(({ steps }) => steps.map(({ prompt }) => prompt))
  const originals = big[1]!.episodes.flatMap(({ steps }) => steps.map(({ prompt }) => Buffer.from(prompt).toString()))
  expect(prompts(read[1]!)).toEqual(originals)
  expect(await readGroup(run, 1, 1)).toEqual(read[1])
  expect(await readGroup(run, 1, 3)).toBeUndefined()
  expect(await readGroup(run, 2, 1)).toBeUndefined()
})

it("sums up every episode without reading any", async () => {
  const { groups, credit } = plainGroups(2)
  await record(run, [
    [1, { groups, credit }],
    [2, plainGroups(1)],
  ])
  const [first, second] = await readRecordedIterations(run)
  const { checksum, ...columns } = first!
  expect(columns).toEqual({
    iteration: 1,
    group: [0, 0, 1, 1],
    member: [0, 1, 0, 1],
    task: [0, 0, 1, 1],
    outcome: [0, 1, 0, 1],
    success: [1, null, 1, null],
    return: [0, 0, 0, 0],
    steps: [2, 2, 2, 2],
    tokens: [9, 8, 9, 8],
    tasks: ['{"seed":0}', '{"seed":1}'],
    problems: { invalid: [0, 0, 0, 0], truncated: [0, 0, 0, 0], revisits: [0, 0, 0, 0], rejected: [0, 0, 0, 0] },
  })
  expect(second!.iteration).toBe(2)
  expect(second!.checksum).not.toBe(checksum)
  expect(await readRecordedIterations(run, { from: 2 })).toEqual([second])
  expect(await readRecordedIterations(run, { to: 1 })).toEqual([first])
  expect((await all(readEpisodes(run, { from: 2 }))).map(({ iteration }) => iteration)).toEqual([2])
  expect((await all(readEpisodes(run, { to: 1 }))).map(({ iteration }) => iteration)).toEqual([1, 1])
})

it("keeps tokens that were put there, and the other completions to a prompt", async () => {
  const forced = Uint8Array.of(0, 1, 0)
  const entropies = Float32Array.of(0.5, 0, 0.25)
  const other = (completion: string, score: number, changes: object = {}) => {
    const { prompt, logProbs, text, action, valid, completion: ids } = said("a", "one", completion, changes)
    return { prompt, logProbs, text, action, valid, completion: ids, score, ...changes }
  }
  const candidates = [other("long one", 0.5), other("no", -1, { forced, entropies, valid: false })]
  const first = episode([
    said("a", "one", "xy", { score: 1, candidates, forced }),
    said("b", "two", "y"),
    said("b", "three", "y", { score: -2, candidates: [] }),
  ])
  const second = episode([said("a", "one", "z", { score: 0, candidates: [other("fresh", 0)] })])
  const groups = [group(0, [first, second, episode([said("c", "four", "w")])])]
  const [read] = await readBack(groups, { advantages: new Float64Array(5) })
  const steps = read!.episodes.flatMap((one) => one.steps)
  expect(steps.map(({ forced, score }) => [forced, score])).toEqual([
    [[0, 1, 0], 1],
    [undefined, undefined],
    [undefined, -2],
    [undefined, 0],
    [undefined, undefined],
  ])
  expect(
    steps.map((one) =>
      one.candidates?.map((completion) => [completionText(completion), completion.action, completion.score]),
    ),
  ).toEqual([
    [
      ["long one<|end|>", "long one", 0.5],
      ["no<|end|>", "no", -1],
    ],
    undefined,
    [],
    [["fresh<|end|>", "fresh", 0]],
    undefined,
  ])
  const [plain, told] = steps[0]!.candidates!
  expect(told).toEqual({
    completion: ["n", "o", "<|end|>"],
    logProbs: [-0.125, -0.25, -0.375],
    ...{ entropies: [0.5, 0, 0.25], forced: [0, 1, 0], valid: false, action: "no", score: -1 },
  })
  expect(plain).toMatchObject({ valid: true, logProbs: [...candidates[0]!.logProbs] })
  for (const key of ["entropies", "forced"]) expect(plain).not.toHaveProperty(key)
  expect(steps.map(completionText)).toEqual(["xy<|end|>", "y<|end|>", "y<|end|>", "z<|end|>", "w<|end|>"])
})
