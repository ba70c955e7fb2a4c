import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { TrainingData } from "../../src/data/data.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { TokenLoss } from "../../src/loss/token-loss.ts"
import { Run } from "../../src/runs/run.ts"
import type { SftOptions } from "../../src/sft/options.ts"
import { type SftSetup, sft } from "../../src/sft/sft.ts"
import { recordedEpisodes } from "../../src/view/record/as-data.ts"
import { file, marked } from "../data/examples.ts"
import { byRow } from "../engine/by-row.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { episode, step } from "../training/episodes.ts"
import { all, TinyModel } from "../training/tiny.ts"
import { group, record } from "../view/record/groups.ts"

const doors = doorsEnvironment() as Environment
const tiny = new TinyModel(doors)
const rooms = ["red", "green", "blue"].flatMap((room, at) =>
  [0, 1, 2].map((place) => [`${room} ${place}`, "abc"[at]!] as const),
)
const user = (content: string) => ({ role: "user", content })
const said = (content: string) => ({ role: "assistant", content })
const talks = rooms.map(([room, door]) => ({ messages: [user(room), said(door)] }))
const pairs = rooms.map(([room, door]) => ({ prompt: room, chosen: door, rejected: door === "a" ? "b" : "a" }))
const small: SftOptions = { epochs: 4, completionsPerUpdate: 4, optimizer: { learningRate: 3e-3 } }

async function cloned(given: Partial<SftSetup>, model?: Awaited<ReturnType<typeof tiny.open>>) {
  const { policy, tokenizer } = model ?? (await tiny.open())
  const warnings: string[] = []
  const setup = { policy, tokenizer, onWarning: (message: string) => warnings.push(message), ...small, ...given }
  return { policy, tokenizer, warnings, reports: await all(sft(setup as SftSetup)) }
}

const refused = (given: Partial<SftSetup>, code: string, message: RegExp) =>
  expect(cloned(given)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })

describe("SFT on transcripts", () => {
  it("learns their completions, also in conversations", async () => {
    const long = { messages: rooms.flatMap(([room, door]) => [user(room), said(door)]) }
    const { policy, tokenizer, reports } = await cloned({ data: file([...talks, long]), epochs: 40 })
    expect(reports[0]).toMatchObject({ epoch: 1, epochs: 40, completions: 18 })
    expect(reports.at(-1)!.loss).toBeLessThan(reports[0]!.loss / 4)
    for (const [room, door] of rooms) {
      const { tokens: prompt } = await tokenizer.encodeChat([{ role: "user", content: room }])
      const { tokens } = await policy.sample({
        prompt,
        maxTokens: 5,
        temperature: 0,
        stopTokens: tokenizer.eosTokens,
        key: [0, 0],
      })
      expect(tokenizer.decode(tokens)).toBe(`${door}<|im_end|>`)
    }
  })

  it("skips examples that are too long and names them, or truncates them", async () => {
    const { policy } = await tiny.open()
    const long = { messages: [user("red 0"), said("a"), user("green 1"), said("b".repeat(2 * policy.maxPositions))] }
    const data = file([talks[0], long, talks[1]])
    const left = await cloned({ data, epochs: 1 })
    expect(left.reports[0]!.completions).toBe(2)
    expect(left.warnings).toEqual([
      expect.stringMatching(
        /: 1 conversation is longer than the \d+ tokens that the model can train on \(line 2; the longest has \d+\), and is dropped;/,
      ),
    ])
    const cut = await cloned({ data, epochs: 1, tooLong: "truncate" })
    expect(cut.reports[0]!.completions).toBe(4)
    expect(cut.warnings).toEqual([expect.stringMatching(/and is truncated\.$/)])
    await refused({ data: file([long]) }, "BAD_DATA", /is dropped.* No example is left/)
  })

  it("accepts a custom source and a custom loss", async () => {
    const tokens = Int32Array.of(1, 2, 3, 4)
    const sequences = [{ tokens, segments: [{ start: 1, length: 3 }] }]
    const data: TrainingData = {
      name: "mine",
      async *examples() {
        yield { place: "here", sequences }
        yield { place: "there", sequences }
      },
    }
    const seen: number[] = []
    const loss: TokenLoss = {
      name: "mine",
      needs: ["reference"],
      evaluate({ tokens, logProbs, referenceLogProbs, advantages, tasks }) {
        seen.push(...tasks)
        expect([...advantages]).toEqual(new Array(tokens).fill(1))
        const gradient = Float32Array.from(logProbs, (value, t) => 2 * (value - referenceLogProbs![t]! - 0.1))
        return { loss: gradient.reduce((sum, one) => sum + one ** 2 / 4, 0), gradient, metrics: { "mine/seen": 1 } }
      },
    }
    const { reports } = await cloned({ data, loss, epochs: 3, optimizer: { learningRate: 1e-4 } })
    expect(new Set(seen)).toEqual(new Set([0, 1]))
    expect(reports[0]).toMatchObject({ loss: expect.closeTo(0.06, 4), metrics: { "mine/seen": 1 } })
    expect(reports.at(-1)!.loss).toBeLessThan(reports[0]!.loss)
  })
})

describe("DPO", () => {
  const dpo: SftOptions = { loss: { name: "dpo", beta: 0.5 }, optimizer: { learningRate: 1e-3 } }

  it.each<SftOptions["loss"]>([
    { name: "dpo", beta: 0.5 },
    { name: "dpo", objective: "ipo", beta: 0.5 },
  ])("learns what is preferred (%o)", async (loss) => {
    const model = await tiny.open()
    const row = async (room: string, completion: string) => {
      const prompt = (await model.tokenizer.encodeChat([{ role: "user", content: room }])).tokens
      const tokens = Int32Array.from([...prompt, ...model.tokenizer.encode(`${completion}<|im_end|>`)])
      return { tokens, segments: [{ start: prompt.length, length: tokens.length - prompt.length }] }
    }
    const lead = async () => {
      const rows = await Promise.all(
        pairs.flatMap(({ prompt, chosen, rejected }) => [row(prompt, chosen), row(prompt, rejected)]),
      )
      const found = byRow(rows, await model.policy.logProbs(rows)).map(({ logProbs }) =>
        logProbs.reduce((sum, one) => sum + one),
      )
      return pairs.map((_, at) => found[2 * at]! - found[2 * at + 1]!)
    }
    const before = await lead()
    const { reports } = await cloned({ ...dpo, data: file(pairs), loss, epochs: 30 }, model)
    const after = await lead()
    expect(reports[0]).toMatchObject({ completions: 18 })
    expect(reports.at(-1)!.metrics).toMatchObject({ "preference/accuracy": 1 })
    expect(reports.at(-1)!.metrics["preference/margin"]).toBeGreaterThan(0.3)
    const moved = after.map((value, at) => value - before[at]!)
    expect(Math.min(...moved)).toBeGreaterThan(0)
    expect(moved.reduce((sum, one) => sum + one) / moved.length).toBeGreaterThan(0.6)
  })

  it("starts at log 2, with both sides of a pair in one batch", async () => {
    const { reports } = await cloned({
      ...dpo,
      data: file(pairs),
      completionsPerUpdate: 1,
      optimizer: { learningRate: 0 },
      epochs: 1,
    })
    expect(reports[0]!.loss).toBeCloseTo(Math.LN2, 5)
  })

  it("skips a pair if one side is too long", async () => {
    const { policy } = await tiny.open()
    const long = { prompt: "red 0", chosen: "a", rejected: "b".repeat(2 * policy.maxPositions) }
    const { reports, warnings } = await cloned({ ...dpo, data: file([pairs[0], long]), epochs: 1 })
    expect([reports[0]!.completions, warnings.length]).toEqual([2, 1])
  })
})

describe.each<[string, () => string, SftOptions]>([
  ["transcripts", () => file(talks), {}],
  ["pairs", () => file(pairs), { loss: { name: "dpo" } }],
])("a stopped cloning of %s", (_, source, options) => {
  it("is resumed with bit-identical results, and not with other data", async () => {
    const data = source()
    const whole = await cloned({ data, ...options })
    const directory = join(tiny.folder, `run-of-${options.loss ? "pairs" : "talks"}`)
    const stop = new AbortController()
    const onProgress = ({ done }: { done: number }) => done === 6 && stop.abort(new Error("enough"))
    {
      await using run = await Run.open(directory, {})
      await expect(cloned({ data, ...options, run, onProgress, signal: stop.signal })).rejects.toThrow("enough")
    }
    {
      await using run = await Run.open(directory, {}, { resume: true })
      await refused(
        { data: file(options.loss ? pairs.slice(1) : talks.slice(1)), ...options, run },
        "BAD_CONFIG",
        /data, that it was started with/,
      )
    }
    await using run = await Run.open(directory, {}, { resume: true })
    const resumed = await cloned({ data, ...options, run })
    const timeless = (reports: typeof whole.reports) => reports.map(({ seconds: _, ...report }) => report)
    expect(timeless(resumed.reports)).toEqual(timeless(whole.reports).slice(-resumed.reports.length))
    expect(resumed.reports.length).toBeGreaterThan(0)
    expect(await tiny.weights(resumed.policy)).toBe(await tiny.weights(whole.policy))
  })
})

describe("recorded episodes", () => {
  const recorded = async () => {
    const { tokenizer } = await tiny.open()
    const spoken = (before: string, asked: string, completion: string, changes: object = {}) => {
      const prompt = `${before}<|im_start|>user\n${asked}<|im_end|>\n<|im_start|>assistant\n`
      const tokens = tokenizer.encode(`${completion}<|im_end|>`)
      return step(asked, 0, 1, {
        prompt: tokenizer.encode(prompt),
        completion: tokens,
        logProbs: new Float32Array(tokens.length),
        ...changes,
      })
    }
    const before = "<|im_start|>user\nred 0<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n"
    const won = [spoken("", "red 0", "a"), spoken(before, "blue 1", "c"), spoken("", "green 2", "b")]
    const broken = [spoken("", "red 1", "x", { valid: false }), spoken("", "red 1", "a")]
    const episodes = [
      episode(won, { metrics: { success: 1 } }),
      episode([spoken("", "red 0", "b")], { metrics: { success: 0 } }),
      episode(broken, { metrics: { success: 1 } }),
      episode([spoken("", "red 0", "c")], { outcome: "failed", metrics: { success: 1 } }),
    ]
    const directory = join(tiny.folder, `recorded-${Math.random()}`)
    await record(directory, [[1, { groups: [group(0, episodes)], credit: { advantages: new Float64Array(7) } }]], {
      tokenizer,
    })
    return { directory, tokenizer }
  }

  it("are learned from if successful, a growing conversation as one row", async () => {
    const { directory, tokenizer } = await recorded()
    for (const folder of [directory, join(directory, "episodes")]) {
      const context = { tokenizer, completions: "all", successfulOnly: true, onWarning: () => {} } as const
      const examples = await all(recordedEpisodes(folder).examples(context))
      expect(examples.map(({ place }) => place)).toEqual([
        "iteration 1, task 0, episode 0",
        "iteration 1, task 0, episode 2",
      ])
      const asked = (room: string) => `<|im_start|>user\n${room}<|im_end|>\n<|im_start|>assistant\n`
      expect(examples.map(({ sequences }) => sequences.map((row) => marked(tokenizer, row)))).toEqual([
        [`${asked("red 0")}[a<|im_end|>]\n${asked("blue 1")}[c<|im_end|>]`, `${asked("green 2")}[b<|im_end|>]`],
        [`${asked("red 1")}[a<|im_end|>]`],
      ])
    }
    expect((await cloned({ data: recordedEpisodes(directory), epochs: 1 })).reports[0]!.completions).toBe(4)
    expect(
      (await cloned({ data: recordedEpisodes(directory), epochs: 1, successfulOnly: false })).reports[0]!.completions,
    ).toBe(5)
  })

  it("are required", async () => {
    await refused({ data: recordedEpisodes(tiny.folder) }, "BAD_DATA", /has no recorded episodes/)
    await refused({ data: recordedEpisodes(join(tiny.folder, "nowhere")) }, "IO", /There is no run/)
  })
})

it("rejects incompatible options before anything starts", async () => {
  await refused({}, "BAD_ARGUMENT", /sft needs an expert or data: give environment or data/)
  await refused({ data: "" }, "BAD_ARGUMENT", /data must be the path of a JSON Lines file/)
  await refused({ data: "nowhere.jsonl" }, "BAD_DATA", /nowhere\.jsonl/)
  await refused({ data: file([]) }, "BAD_DATA", /has no example to learn from/)
  await refused({ data: file(talks), expert: () => "a" }, "BAD_ARGUMENT", /data and an expert are both given/)
  await refused({ data: file(pairs) }, "BAD_DATA", /line 1: is a preference pair.*set loss to dpo/)
  await refused({ data: file(talks), loss: { name: "dpo" } }, "BAD_DATA", /line 1: is not a preference pair/)
  await refused({ environment: doors, loss: { name: "dpo" } }, "BAD_ARGUMENT", /which an expert does not provide/)
  const evaluate: TokenLoss["evaluate"] = () => ({ loss: 0, gradient: new Float32Array(0) })
  await refused(
    { data: file(talks), loss: { name: "t", needs: ["teacher"], evaluate } },
    "BAD_ARGUMENT",
    /needs "teacher"/,
  )
  await refused(
    { data: file([talks[0], pairs[0]]), loss: { name: "t", evaluate } },
    "BAD_DATA",
    /line 2: pairs and transcripts/,
  )
  const { tokenizer } = await tiny.open()
  const { encode, eosTokens } = tokenizer
  const plain = {
    encode,
    eosTokens,
    encodeChat: tokenizer.encodeChat.bind(tokenizer),
    decode: tokenizer.decode.bind(tokenizer),
  }
  await refused({ tokenizer: plain, data: file(talks) }, "BAD_ARGUMENT", /need the chat template of the model/)
})
