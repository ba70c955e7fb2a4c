import type { Capabilities } from "../engine/remote/capabilities.ts"
import { RemoteEngine } from "../engine/remote/remote-engine.ts"
import type { Finding } from "./doctor.ts"
import { describeFailure } from "./fail.ts"
import { describePending } from "./pending.ts"
import { activity } from "./terminal/activity.ts"

/** Any training that a server may be asked for, so that it is tried. */
const anyPlan = {
  ...({ loss: "linear", entropyCoefficients: false, statistics: [], models: [], manySpans: true } as const),
  ...{ optimizer: { learningRate: 0, maxGradientNorm: Number.POSITIVE_INFINITY }, checkpoints: false },
}
/** The probe's tokens are below this, and no longer than that. */
const shape = { vocabularySize: 97, maxPositions: 64, parameters: 1 }

/** Tries a server of the Tinker API. What it lacks is a finding, never an error. */
export async function checkEngine(options: {
  readonly url: string
  readonly model: string | undefined
  readonly plainHttp?: boolean | undefined
  readonly rank: number
}): Promise<Finding[]> {
  try {
    const engine = await activity.during(`the engine at ${options.url}`, () =>
      RemoteEngine.connect(shape, { ...options, onWarning: () => {} }),
    )
    await using _ = engine
    const pending = () => describePending(engine) ?? `the engine at ${options.url}, which is being tried`
    await activity.during(pending, () => engine.check(anyPlan))
    const report = await engine.probes()
    return [
      { name: "engine", state: "ok", value: `${engine.baseModel} at ${engine.url}` },
      ...(report ? describe(report.capabilities) : []),
      ...Object.entries(report?.measured ?? {}).map(
        ([name, value]): Finding => ({ name: "measured", state: "note", value: `${name}: ${value}` }),
      ),
    ]
  } catch (error) {
    return [{ name: "engine", state: "missing", value: describeFailure(error) }]
  }
}

function describe(found: Capabilities): Finding[] {
  const finding = (name: string, good: boolean, yes: string, no: string): Finding => {
    return { name, state: good ? "ok" : "note", value: good ? yes : no }
  }
  return [
    finding(
      "losses",
      found.reduction === "sum",
      "summed over tokens",
      "means of means; advantages are scaled to undo that",
    ),
    finding("clip", found.clips, "ppo clips the ratio", "ppo is something else; losses go by log-probabilities"),
    finding(
      "other losses",
      found.custom === "cross_entropy",
      "by cross-entropy",
      found.custom ? "by importance sampling" : "none",
    ),
    finding(
      "gradient norm",
      found.clipsGradients,
      "scaled down",
      "not scaled down: set optimizer.maxGradientNorm to .inf",
    ),
    finding("doubled requests", found.knowsAgain, "done once", "done twice: a lost one ends the run, to be resumed"),
    finding("reference", found.reference, "can be asked", "cannot be asked: no KL"),
    finding("log-probabilities", found.tellsLogProbs, "told by losses", "not told by losses: a forward pass more"),
    finding("gigpo", found.keyed, "samples as this machine would", "samples by seeds of its own"),
  ]
}
