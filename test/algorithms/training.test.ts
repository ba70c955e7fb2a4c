import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import rewardWeights from "../../examples/extend/curriculum.ts"
import type { Algorithm } from "../../src/algorithms/algorithm.ts"
import { algorithms } from "../../src/algorithms/algorithms.ts"
import { settingsOf } from "../../src/algorithms/settings-for.ts"
import type { Config } from "../../src/cli/config/config.ts"
import { configuredSft, configuredTraining, openConfiguredEnvironment } from "../../src/cli/config/modules.ts"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import type { CourseSegment } from "../../src/data/course.ts"
import type { Example, TrainingData } from "../../src/data/data.ts"
import type { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { stepSequence } from "../../src/engine/sequence.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { directions } from "../../src/environment/sokoban/room.ts"
import { sokoban } from "../../src/environment/sokoban/sokoban.ts"
import { formatRunConfig } from "../../src/runs/config.ts"
import { sft } from "../../src/sft/sft.ts"
import type { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import type { TrainSetup } from "../../src/training/prepare.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { file } from "../data/examples.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TellingPolicy } from "../rollout/telling-policy.ts"
import { characters } from "../training/table-policy.ts"
import { TinyModel } from "../training/tiny.ts"

// Every algorithm of the table that is implemented trains with its settings alone, on built-in environments, with the engine of this package.

/** Least settings of a training. Completions are constrained to the format of the environment, so that tags and actions occur. */
const least = (environment: string) => `
model: m
environment: { name: ${environment}, thinking: required, rules: false, maxSteps: 4 }
training:
  iterations: 2
  groups: 3
  groupSize: 4
  stepsPerUpdate: 16
  optimizer: { learningRate: 0.01, warmup: 0 }
  critic: { stepsPerUpdate: 16 }
  rollout: { maxCompletionTokens: 48, constrained: true }
sft: { epochs: 2, completionsPerUpdate: 4, optimizer: { learningRate: 2, warmup: 0 } }
`

/** Settings without which a part of an algorithm would not take part in such short episodes, by the name that the table gives. */
const visible: Readonly<Record<string, readonly string[]>> = {
  chunks: ["environment.memory.name=chunks", "environment.memory.size=40", "environment.memory.maxTokens=8"],
  "look-first": ["environment.wrapper.steps=2"],
  spear: ["training.estimator.name=spear", "training.estimator.capacity=2", "training.estimator.warmup=0"],
  parallel: [
    "environment.wrapper.name=parallel",
    "environment.wrapper.copies=2",
    "training.rollout.maxCompletionTokens=160",
  ],
  t2po: ["training.rollout.constrained=false"], // ends thoughts by tokens of its own
  "think-when-unsure": ["training.rollout.constrained=false"],
}

const noted = ["training.rollout.constrained=false", "training.rollout.maxCompletionTokens=160"]

/** Memories that need notes in completions: a format that constrained decoding does not have, nor a model of random weights. */
const noting: Readonly<Record<string, string>> = {
  state: "<state>a box</state>",
  skills: "<skill>push</skill>",
  beliefs: "<belief>a box</belief><expect>nothing</expect>",
  "meta-reasoning": "<explore>the box</explore>",
  "belief-state": '<belief>{ "state": { "objects": { "mug 1": "desk 1" } }, "task": { "phase": "find" } }</belief>',
}

/** Lets a policy write notes and an action of Sokoban, which ALFWorld rejects, that depends on the key of the request, with the log-probabilities that it gives them. */
function speaking(policy: NativePolicy, tokenizer: Tokenizer, notes: string): NativePolicy {
  const sample: NativePolicy["sample"] = async ({ prompt, key }) => {
    const action = directions[new Random(key).below(4)]
    const text = `<think>so</think>${notes}<action>${action}</action>`
    const tokens = Int32Array.from([...tokenizer.encode(text), tokenizer.eosTokens[0]!])
    const { logProbs } = await policy.logProbs([stepSequence(prompt, tokens)])
    return { tokens, logProbs: Float32Array.from(logProbs), finishReason: "stop" }
  }
  return Object.assign(policy, { sample })
}

/** What is handed to `train` besides settings, by how the table says it. */
const handedIn: Readonly<Record<string, () => Partial<TrainSetup>>> = {
  "curriculum: rewardWeights(options)": () => ({
    curriculum: rewardWeights({ channels: ["success", "boxesOnTarget"], validation: 1, size: 0.2 }),
  }),
}

/** Its settings over the least ones, as a file has them, as a run keeps them, and read again. */
function configured(algorithm: Algorithm): Config {
  const { environments: [environment = "sokoban"] = [], set = {} } = algorithm
  const shown = Object.values(set).flatMap((name) => visible[String(name)] ?? (String(name) in noting ? noted : []))
  const chosen = settingsOf(algorithm).filter((one) => !shown.some((own) => own.startsWith(one.split("=")[0]!)))
  const config = resolveConfig(least(environment), [...chosen, ...shown])
  const { seed } = config
  expect(resolveConfig(formatRunConfig({ gigpo: "0", ...config, seed } as never))).toEqual(config)
  return config
}

const model = new TinyModel(sokoban(), { seed: 1 })
const teachers = new TinyModel(sokoban(), { seed: 2 })

/** Replies that differ, and are more and less sure: the policy of the trainings from data. */
const logits = new TellingPolicy().logits.map((_, at) => (at % 128 === 0 ? 4 : 3 * (((at * 104_729) % 997) / 997) ** 3))
const varied = () => Object.assign(new SeeingPolicy(), { maxPositions: 8000, logits: logits.slice() })

/** A table reads the last tokens only, so what a privileged teacher sees in front makes it less sure here. */
class SeeingPolicy extends TellingPolicy {
  override async logProbs(...[rows, how]: Parameters<TellingPolicy["logProbs"]>) {
    const sees = rows.some(({ tokens }) => characters.decode(tokens.slice().reverse()).includes("attempt at the task"))
    return await super.logProbs(rows, { ...how, ...(sees && { temperature: 2 }) })
  }
}

function checkFinite(numbers: readonly Readonly<Record<string, number | undefined>>[]): void {
  for (const metrics of numbers)
    for (const [name, value] of Object.entries(metrics))
      if (value !== undefined) expect(value, name).toSatisfy(Number.isFinite)
}

function checkLearned(policy: TellingPolicy, numbers: Parameters<typeof checkFinite>[0]): void {
  checkFinite(numbers)
  expect(policy.logits.every(Number.isFinite)).toBe(true)
  expect(policy.logits.some((logit, at) => logit !== logits[at])).toBe(true)
}

/** Transcripts are written by a template: each message is a line. */
const templated = Object.assign(
  { ...characters },
  {
    chatTemplate: "",
    renderChat: async (messages: readonly { readonly content: string }[]) =>
      messages.map(({ content }) => `${content}\n`).join(""),
  },
)

const there = algorithms.filter(({ status }) => ["exact", "partial", "interpreted"].includes(status))
const cloned = there.filter(({ set = {} }) => Object.keys(set).some((key) => key.startsWith("sft.")))
const trained = there.filter((algorithm) => !cloned.includes(algorithm))

/** A judge that likes long attempts. */
const judged: typeof fetch = async (_, init) => {
  const { messages } = JSON.parse(String(init!.body)) as { readonly messages: readonly { readonly content: string }[] }
  const attempts = messages[0]!.content.match(/<attempt[\s\S]*?<\/attempt>/g)!
  const longest = Math.max(...attempts.map(({ length }) => length))
  const content = JSON.stringify({ scores: attempts.map(({ length }) => length / longest) })
  return Response.json({ choices: [{ message: { content } }] })
}
beforeAll(() => void vi.stubGlobal("fetch", judged))
afterAll(() => void vi.unstubAllGlobals())

describe.each(trained.map((algorithm) => [algorithm.system, algorithm] as const))("%s", (_, algorithm) => {
  it("trains, as the table asks for it", async () => {
    const { code } = algorithm
    const config = configured(algorithm)
    const opened = await model.open(undefined, { critic: true })
    const { tokenizer } = opened
    const notes = noting[String(algorithm.set?.["environment.memory"])]
    const policy = notes === undefined ? opened.policy : speaking(opened.policy, tokenizer, notes)
    const teacher = (await teachers.open()).policy
    const before = await model.weights(policy)
    const warnings: string[] = []
    const reports = await train({
      ...(await configuredTraining(config)),
      environment: await openConfiguredEnvironment(config),
      ...{ policy, tokenizer, teacher, onWarning: (warning) => void warnings.push(warning) },
      ...(code !== undefined && handedIn[code]!()),
    })
    expect(reports).toHaveLength(2)
    checkFinite(reports.map(({ metrics }) => metrics))
    expect(await model.weights(policy)).not.toBe(before)
    expect(reports[0]!.metrics["episode/failed"] ?? 0).toBe(0)
  })
})

/** Episodes of one step each, every other of which was worth something. */
const recorded = (prompts: readonly string[]): TrainingData => ({
  name: "recorded",
  async *examples() {
    for (const [at, prompt] of prompts.entries()) {
      const course = { rewards: Float64Array.of(at % 2), at: 0 }
      const segment: CourseSegment = { start: prompt.length, length: 1, course }
      yield {
        place: prompt,
        sequences: [{ tokens: characters.encode(`${prompt}a`), segments: [segment] }],
      } satisfies Example
    }
  },
})

describe.each(cloned.map((algorithm) => [algorithm.system, algorithm] as const))("%s", (_, algorithm) => {
  it("clones, as the table asks for it", async () => {
    const config = configured(algorithm)
    const prompts = ["red 0", "green 1", "blue 2"]
    const pairs = prompts.map((prompt) => ({ prompt, chosen: "a", rejected: "b" }))
    const policy = varied()
    const { data, ...cloning } = await configuredSft(config)
    const told = "implicitQ" in cloning && cloning.implicitQ ? recorded(prompts) : file(pairs)
    const from = data === undefined ? { tasks: 8, environment: doorsEnvironment() as Environment } : { data: told }
    const reports = await sft({ ...cloning, ...from, ...{ policy, tokenizer: templated } })
    expect(reports).toHaveLength(2)
    checkLearned(
      policy,
      reports.map(({ metrics, loss }) => ({ ...metrics, loss })),
    )
  })
})
