import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import rewardWeights from "../../examples/extend/curriculum.ts"
import type { Algorithm } from "../../src/algorithms/algorithm.ts"
import { algorithms } from "../../src/algorithms/algorithms.ts"
import { settingsOf } from "../../src/algorithms/asked.ts"
import type { Config } from "../../src/cli/config/config.ts"
import { configuredSft, configuredTraining } from "../../src/cli/config/modules.ts"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { plannedStrategies, strata } from "../../src/credit/strata.ts"
import type { CourseSpan } from "../../src/data/course.ts"
import type { Example, TrainingData } from "../../src/data/data.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { memories } from "../../src/environment/memory/memories.ts"
import { makeWrapper } from "../../src/environment/wrappers.ts"
import { only } from "../../src/options/fixed.ts"
import type { Named } from "../../src/options/named.ts"
import { readOptions } from "../../src/options/read.ts"
import type { Fields } from "../../src/options/table.ts"
import { formatRunConfig } from "../../src/runs/config.ts"
import { sft } from "../../src/sft/sft.ts"
import type { TrainSetup } from "../../src/training/prepare.ts"
import { train } from "../../src/training/train.ts"
import { file } from "../data/examples.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TellingPolicy } from "../rollout/telling-policy.ts"
import { characters } from "../training/table-policy.ts"
import { openDoors } from "../training/tiny.ts"

// Every algorithm of the table that is said to be there: by its settings alone, in rooms with doors, by an engine in plain TypeScript.

/** Metrics that algorithms use besides rewards are reported for every step, under their default names. */
const told = (environment: Environment): Environment => ({
  ...environment,
  async start(task, context) {
    const episode = await environment.start(task, context)
    let turn = 0
    const step = async (action: string) => {
      const result = await episode.step(action)
      const metrics = {
        ...{ "information-gain": result.reward - 0.5, "monte-carlo-value": 1 / ++turn, strategy: action.length % 2 },
        ...{ "belief-state": 0.1 * turn, "belief-task": 0, "belief-prediction": 0.1, "belief-format": 1 },
      }
      return { ...result, metrics: { ...result.metrics, ...metrics } }
    }
    return { first: episode.first, step }
  },
})

/** Every reply opens a door, by its first letter: some of each are right. */
const parse: Environment["parse"] = (reply) => {
  const first = reply.codePointAt(0) ?? 0
  return { action: "abc"[first % 3]!, valid: first % 2 === 0 }
}
const doors = told(openDoors({ parse }))

/** The first letters of a reply as an action for each of two copies. */
const tagged = (environment: Environment): Environment => ({
  ...environment,
  parse: ([one = "", two = ""], now) => environment.parse(`<env1>${one}</env1><env2>${two}</env2>`, now),
})

/** What is handed to `train` besides settings, by how the table says it. */
const handedIn: Readonly<Record<string, () => Partial<TrainSetup>>> = {
  "estimator: strata(plannedStrategies)": () => ({ estimator: strata(plannedStrategies) }),
  "curriculum: rewardWeights(options)": () => ({
    curriculum: rewardWeights({ channels: ["success", "rooms"], validation: 1, size: 0.2 }),
  }),
}

const least = `
model: m
environment: { name: sokoban }
training:
  iterations: 2
  groups: 3
  groupSize: 4
  batchSteps: 16
  optimizer: { learningRate: 2, warmup: 0 }
  critic: { batchSteps: 16 }
  rollout: { maxCompletionTokens: 3, maxSteps: 4 }
sft: { epochs: 2, batchSteps: 4, optimizer: { learningRate: 2, warmup: 0 } }
`

/** Its settings over these, as a file has them, as a run keeps them, and read again. */
function configured(algorithm: Algorithm): Config {
  const config = resolveConfig(least, settingsOf(algorithm))
  const { seed } = config
  expect(resolveConfig(formatRunConfig({ gigpo: "0", ...config, seed } as never))).toEqual(config)
  return config
}

/** Episodes here have four steps: half of them look around, where some are to. */
function around({ environment }: Config, inner: Environment): Environment {
  const { around: chosen } = environment as { readonly around?: { readonly name: string } }
  if (!chosen) return inner
  const made = makeWrapper({ ...chosen, ...(chosen.name === "look-first" && { steps: 2 }) })(inner)
  return chosen.name === "parallel" ? tagged(made) : made
}

/** Replies that differ, also in length, and are more and less sure. */
const logits = new TellingPolicy().logits.map((_, at) => (at % 128 === 0 ? 4 : 3 * (((at * 104_729) % 997) / 997) ** 3))
const varied = () => Object.assign(new SeeingPolicy(), { maxPositions: 8000, logits: logits.slice() })

/** A table reads the last tokens only, so what a privileged teacher sees in front makes it less sure here. */
class SeeingPolicy extends TellingPolicy {
  override async logProbs(...[rows, how]: Parameters<TellingPolicy["logProbs"]>) {
    const sees = rows.some(({ tokens }) => characters.decode(tokens.slice().reverse()).includes("attempt at the task"))
    return await super.logProbs(rows, { ...how, ...(sees && { temperature: 2 }) })
  }
}
const teacher = new TellingPolicy()

function checkLearned(policy: TellingPolicy, numbers: Readonly<Record<string, number | undefined>>[]): void {
  for (const metrics of numbers)
    for (const [name, value] of Object.entries(metrics))
      if (value !== undefined) expect(value, name).toSatisfy(Number.isFinite)
  let changed = false
  for (const [at, logit] of policy.logits.entries()) {
    if (!Number.isFinite(logit)) expect(logit, `logit ${at}`).toSatisfy(Number.isFinite)
    changed ||= logit !== logits[at]
  }
  expect(changed).toBe(true)
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

const there = algorithms.filter(({ status }) => status === "exact" || status === "interpreted")
const cloned = there.filter(({ set = {} }) => Object.keys(set).some((key) => key.startsWith("clone.")))
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
    const { set = {}, code } = algorithm
    const config = configured(algorithm)
    const name = set["environment.memory"] as keyof typeof memories | undefined
    const { fields, make }: Named<Fields, unknown> = memories[name ?? "recent"]
    const memory = name && (make(only(readOptions(name, {}, fields), fields) as never) as Environment["memory"])
    const policy = varied()
    const reports = await train({
      ...(await configuredTraining(config)),
      environment: around(config, { ...doors, ...(memory && { memory }) }),
      ...{ policy, tokenizer: characters, teacher, onWarning: () => {} },
      ...(code !== undefined && handedIn[code]!()),
    })
    expect(reports).toHaveLength(2)
    checkLearned(
      policy,
      reports.map(({ metrics }) => metrics),
    )
    expect(reports[0]!.metrics["episode/failed"] ?? 0).toBe(0)
  })
})

/** Episodes of one step each, every other of which was worth something. */
const recorded = (prompts: readonly string[]): TrainingData => ({
  name: "recorded",
  async *examples() {
    for (const [at, prompt] of prompts.entries()) {
      const course = { rewards: Float64Array.of(at % 2), at: 0 }
      const span: CourseSpan = { start: prompt.length, length: 1, course }
      yield { place: prompt, rows: [{ tokens: characters.encode(`${prompt}a`), spans: [span] }] } satisfies Example
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
