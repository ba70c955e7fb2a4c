import { describe, expect, it } from "vitest"
import { processFields } from "../../src/agents/process-agent.ts"
import { aepoFields } from "../../src/credit/aepo.ts"
import { empgFields } from "../../src/credit/empg.ts"
import { gdpoFields } from "../../src/credit/gdpo.ts"
import { opoFields } from "../../src/credit/opo.ts"
import { gigpoFields, grpoFields, outcomeFields } from "../../src/credit/options.ts"
import { overlongFields } from "../../src/credit/overlong.ts"
import { varietyFields } from "../../src/credit/parallel-variety.ts"
import { passAtKFields } from "../../src/credit/pass-at-k.ts"
import { plainEstimators } from "../../src/credit/plain-estimators.ts"
import { ppoFields } from "../../src/credit/ppo.ts"
import { reinforcePlusPlusFields } from "../../src/credit/reinforce-plus-plus.ts"
import { remaxFields } from "../../src/credit/remax.ts"
import { spearFields } from "../../src/credit/spear.ts"
import { loraFields, nativePolicyFields } from "../../src/engine/native/options.ts"
import { environmentFields } from "../../src/environment/registry.ts"
import { taskFileFields } from "../../src/environment/tasks/tasks.ts"
import { surrogateFields } from "../../src/kernels/policy-loss.ts"
import { adaptiveKlFields, clippedSurrogateFields, gspoFields, lossFields } from "../../src/loss/options.ts"
import { walk } from "../../src/options/keys.ts"
import { fieldsOf } from "../../src/options/named.ts"
import { readOptions, readTable } from "../../src/options/read.ts"
import type { OptionFields } from "../../src/options/table.ts"
import { rolloutFields } from "../../src/rollout/options.ts"
import { initializeFields } from "../../src/sft/initialize-options.ts"
import { sftFields } from "../../src/sft/options.ts"
import { evaluationFields } from "../../src/training/evaluation-options.ts"
import { optimizerFields } from "../../src/training/optimizer.ts"
import { trainFields } from "../../src/training/options.ts"

/** What must be given. */
const needed = new Map<OptionFields, object>([
  [loraFields, { rank: 4 }],
  [adaptiveKlFields, { weight: 1, target: 1 }],
  [overlongFields, { cache: 8 }],
  [taskFileFields, { tasks: "tasks.jsonl" }],
  [processFields, { command: ["sh"] }],
])

const tables: Readonly<Record<string, OptionFields>> = {
  gigpoFields,
  grpoFields,
  outcomeFields,
  opoFields,
  passAtKFields,
  gdpoFields,
  remaxFields,
  reinforcePlusPlusFields,
  ppoFields,
  overlongFields,
  loraFields,
  nativePolicyFields,
  adaptiveKlFields,
  clippedSurrogateFields,
  gspoFields,
  lossFields,
  surrogateFields,
  rolloutFields,
  sftFields: sftFields,
  evaluationFields,
  initializeFields,
  optimizerFields,
  trainFields,
  processFields,
  varietyFields,
  empgFields,
  aepoFields,
  spearFields,
  ...fieldsOf(plainEstimators),
  ...environmentFields,
}

describe.each(Object.entries(tables))("the table %s", (_, table) => {
  const keys = walk(table, undefined)

  it("has defaults that are valid values", () => {
    for (const { path, entry } of keys)
      if ("validate" in entry && entry.default !== undefined)
        expect([path, entry.validate(entry.default)]).toEqual([path, undefined])
  })

  it("describes every key without repeating its default", () => {
    for (const { path, entry } of keys) {
      expect([path, entry.help]).toEqual([path, expect.stringMatching(/^\S.*\.$/)])
      expect(entry.help).not.toMatch(/Default/)
    }
  })

  it("gives the same result when its result is read again", () => {
    const given = needed.get(table) ?? {}
    const { value, complaints } = readTable(given, table, "code")
    expect(complaints).toEqual([])
    expect(readTable(value, table, "code")).toEqual({ value, complaints: [] })
  })
})

describe("the options of training", () => {
  it.each([
    [{ optimiser: {} }, "training: optimiser is not an option; did you mean optimizer?"],
    [{ learningrate: 1 }, "training: learningrate is not an option; did you mean optimizer.learningRate?"],
    [{ loss: { clip_low: 0.1 } }, "training: loss.clip_low is not an option; did you mean loss.clipLow?"],
    [{ optimizer: { epsilon: 0 } }, "training: optimizer.epsilon must be above 0, not 0."],
    [{ evaluation: { temperature: 1e-9 } }, "evaluation.temperature must be 0 (greedy decoding) or at least"],
    [{ estimator: 3 }, "training: estimator must be a group of keys, not 3."],
    [{ estimator: { use: { name: "x" } } }, "estimator.use has no function estimate(batch, context)."],
    [
      { estimator: { name: "x", estimate() {}, state() {} } },
      "estimator has only one of state and restore; a part with state",
    ],
    [{ estimator: { use: class Mine {} } }, "estimator.use is a class; give an instance of it, made with `new`."],
    [
      { loss: { use: { name: "x", evaluate() {}, needs: ["refrence"] } } },
      'loss.use needs "refrence"; did you mean "reference"?',
    ],
    [{ loss: { name: "x", evaluate() {}, native: 3 } }, "loss has a native that is not a function."],
    [
      { loss: { use: "mine" } },
      'loss.use must be a function (input) => output, or an object with name and evaluate, not "mine".',
    ],
  ])("%j are rejected in code", (given, message) => {
    expect(() => readOptions("training", given, trainFields)).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringContaining(message) }),
    )
  })

  it("allow schedules for numbers that apply to a single iteration", () => {
    const changing = walk(trainFields, undefined).filter(({ entry }) => "changes" in entry)
    expect(changing.map(({ path }) => path.join("."))).toEqual([
      "rollout.temperature",
      "estimator.gamma",
      "estimator.omega",
      "estimator.invalidActionPenalty",
      "loss.clipLow",
      "loss.clipHigh",
      "loss.clipDual",
      "loss.klWeight",
      "loss.teacherWeight",
      "loss.teacherGate",
      "loss.entropyWeight",
      "rolloutCorrection.truncate",
      "rolloutCorrection.dropBelow",
      "rolloutCorrection.dropAbove",
      "tokenWeights.think",
      "tokenWeights.action",
      "tokenWeights.tool",
      "tokenWeights.other",
      "teacherTokenWeights.alpha",
      "overlong.weight",
      "optimizer.learningRate",
      "optimizer.weightDecay",
      "optimizer.maxGradientNorm",
      "critic.clip",
      "critic.optimizer.learningRate",
      "critic.optimizer.weightDecay",
      "critic.optimizer.maxGradientNorm",
    ])
  })
})
