import { GigpoError } from "../../util/errors.ts"
import type { Sequence } from "../sequence.ts"
import type { Capabilities, LossForm } from "./capabilities.ts"
import type { RemoteLoss } from "./data.ts"
import { GradientSize, type Trials } from "./gradient-size.ts"
import { advantages, allTargets, completionTargets, cutRow, probeRow, type Shape, weighted } from "./probe-rows.ts"
import { MaybeTaken, unlessRefused } from "./refused.ts"
import type { RemoteModel } from "./remote-model.ts"
import type { Samplers } from "./samplers.ts"
import { isOurs, type Session } from "./session.ts"
import { requestOf, stepOf, still, trainOn, type Wire } from "./trainer.ts"

/** Inputs of a probe. A probe creates separate models, so that the trained model is not affected. */
export interface Probed {
  readonly session: Session
  readonly samplers: Samplers
  readonly trials: Trials
  readonly baseModel: string
  readonly vocabularySize: number
  /** Whether every new model starts from the same weights, so that training one in a probe is harmless. True for adapters. */
  readonly movable: boolean
  /** Encoding; undefined tries a protocol buffer first. */
  readonly wire: Wire | undefined
}

/** Measurements by name. */
export type Measured = Record<string, number | string | boolean>

/** Result of a probe. */
export interface Found {
  readonly capabilities: Capabilities
  readonly wire: Wire
  readonly measured: Readonly<Measured>
}

/** Whether two sizes agree within 10 %. Sizes to distinguish differ by at least a third; bfloat16 has three digits. */
const near = (a: number, b: number) => Math.abs(a - b) <= 0.1 * Math.max(Math.abs(a), Math.abs(b))

/**
 * Detects the features in which servers differ, with a learning rate of 0 or on models that are discarded.
 *
 * @throws GigpoError `ENGINE_REJECTED` if the reduction of token losses is unknown.
 */
export async function probe(probed: Probed): Promise<Found> {
  for (let trial = 1; ; trial++)
    try {
      return await once(probed)
    } catch (error) {
      if (!(error instanceof MaybeTaken) || trial === mostTrials) throw error
    }
}

/** Maximum number of probes if a request is lost. Models of a probe are discarded, so nothing is executed twice. */
const mostTrials = 3

async function once(probed: Probed): Promise<Found> {
  const measured: Measured = {}
  const row = probeRow(probed.vocabularySize)
  const found = await withModel(probed, (model) => tried(probed, model, row, measured))
  // Only after the first model is freed: a server may have memory for only one model.
  const gradientClipping =
    probed.movable && (await isBounded(new GradientSize(probed.trials, row, found.wire), measured))
  return { capabilities: { ...found.capabilities, gradientClipping }, wire: found.wire, measured }
}

async function withModel<T>({ trials }: Probed, use: (model: RemoteModel) => Promise<T>): Promise<T> {
  const model = await trials.make()
  try {
    return await use(model)
  } finally {
    await trials.free(model)
  }
}

async function tried(probed: Probed, model: RemoteModel, row: Sequence, measured: Measured) {
  await stepOf(model, still) // drops gradients that another client's model may have left
  const { wire, now } = await findWire(model, row, probed.wire)
  const idempotent = await isKnownAgain(model, row, wire)
  const reference = await compareSamplers(probed, model, row, now, measured)
  const gradient = new GradientSize(probed.trials, row, wire)
  const size = async (name: string, loss: RemoteLoss) => {
    const found = await unlessRefused(() => gradient.of(loss, model))
    measured[name] = found ?? "refused"
    return found ?? Number.NaN
  }
  const form = await findForm(probed, row, now, size)
  const clippedSurrogate = await findClip(row, now, form, size)
  const customLoss = await findCustom(row, form, measured, size)
  const { logProbs } = await trainOn(model, advantages(row, now, { shift: -1, weights: form.tokenWeights }), wire)
  await stepOf(model, still) // some servers pass the gradients of a freed model on to the next one in its slot
  const returnsLogProbs = logProbs[0]?.length === now.length && logProbs[0].every((value, i) => near(value, now[i]!))
  const ours = isOurs(probed.session)
  return {
    capabilities: {
      ...form,
      ...{ clippedSurrogate, customLoss, idempotent, logProbs: returnsLogProbs, reference },
      ...{ gradientNorm: gradient.tells, clearGradients: ours, sampleKeys: ours },
    },
    wire,
  }
}

type Size = (name: string, loss: RemoteLoss) => Promise<number>

/** Returns the encoding that the server accepts, and the current log-probabilities of all targets. */
async function findWire(
  model: RemoteModel,
  row: Sequence,
  requestedWire: Wire | undefined,
): Promise<{ readonly wire: Wire; readonly now: Float32Array }> {
  const score = async (wire: Wire) => {
    const { logProbs } = await trainOn(model, weighted(row, 1), wire, { forwardOnly: true })
    return { wire, now: logProbs[0]! }
  }
  if (requestedWire) return await score(requestedWire)
  return (await unlessRefused(() => score("protobuf"))) ?? (await score("json"))
}

/** Whether the server recognizes a repeated request: a forward pass, which changes nothing, is sent twice with the same number. */
async function isKnownAgain(model: RemoteModel, row: Sequence, wire: Wire): Promise<boolean> {
  const first = await forward(model, row, wire, false)
  const second = await unlessRefused(() => forward(model, row, wire, true))
  await first.result()
  if (second && second.requestId !== first.requestId) await second.result()
  return second?.requestId === first.requestId
}

async function forward(model: RemoteModel, row: Sequence, wire: Wire, repeat: boolean) {
  const { path, request } = requestOf(weighted(row, 1), wire, true)
  return await model.submit(path, request, { protobuf: wire === "protobuf", repeat })
}

/** Whether the initial model can be queried; also measures the difference of sampler and trainer. */
async function compareSamplers(
  { samplers, baseModel }: Probed,
  model: RemoteModel,
  row: Sequence,
  now: Float32Array,
  measured: Measured,
): Promise<boolean> {
  const difference = async (of: string) => {
    const found = await samplers.score(of, row.tokens)
    return Math.max(...found.map((value, i) => Math.abs(value - now[i]!)))
  }
  measured["sampler against trainer"] = await difference(await samplers.publish(model, "probe"))
  const reference = await unlessRefused(async () => await difference(await samplers.open({ base_model: baseModel })))
  measured["model of the beginning against trainer"] = reference ?? "refused"
  return reference !== undefined
}

/** Returns the reduction of token losses. Weights are used only if needed: some servers reject inputs that a loss does not name. */
async function findForm({ vocabularySize }: Probed, row: Sequence, now: Float32Array, size: Size): Promise<LossForm> {
  const importance = (name: string, shape: Shape, of: Sequence = row) => size(name, advantages(of, now, shape))
  const one = await importance("one datum", {})
  const two = await importance("two data", { copies: 2 })
  const half = await importance("half of its tokens", { half: true })
  const cut = await importance("half of its tokens, the rest cut off", {}, cutRow(vocabularySize))
  if (near(two, 2 * one) && near(half, cut)) return { reduction: "sum", tokenWeights: false }
  const weightedOne = await importance("one datum with weights", { weights: true })
  if (near(two, one) || !Number.isFinite(one)) {
    const weightedTwo = await importance("two data with weights", { weights: true, copies: 2 })
    const counted = Number.isFinite(one) ? near(weightedOne * completionTargets, one * allTargets) : true
    if (near(weightedTwo, weightedOne) && counted) return { reduction: "mean-of-means", tokenWeights: true }
    if (near(half * allTargets, cut * (allTargets - completionTargets / 2)))
      return { reduction: "mean-of-means", tokenWeights: false }
  }
  const sizes = Object.entries({ one, two, half, cut }).map(([name, value]) => `${name} ${value.toPrecision(3)}`)
  throw new GigpoError(
    "ENGINE_REJECTED",
    `This engine reduces token losses neither by a sum nor by a mean of means (sizes of gradients: ${sizes.join(", ")}), so training ` +
      "would be incorrect. Use another server, or set its reduction to a token sum.",
  )
}

/** Whether "ppo" has no gradient outside the clip range, and that of importance sampling inside. */
async function findClip(row: Sequence, now: Float32Array, { tokenWeights }: LossForm, size: Size): Promise<boolean> {
  const ppo = (shift: number) => advantages(row, now, { loss: "ppo", shift, weights: tokenWeights })
  const plain = await size("importance sampling", advantages(row, now, { weights: tokenWeights }))
  const inside = await size("ppo inside its clip", ppo(0))
  const outside = await size("ppo outside its clip", ppo(-1))
  return Math.abs(outside) < 0.02 * Math.abs(plain) && near(inside, plain)
}

/** Returns the loss that passes any derivatives to the network. */
async function findCustom(
  row: Sequence,
  { reduction }: LossForm,
  measured: Measured,
  size: Size,
): Promise<Capabilities["customLoss"]> {
  if (reduction === "mean-of-means") return "importance_sampling"
  const negative = Math.abs(await size("cross-entropy, weights of -1", weighted(row, -1)))
  const one = Math.abs(measured["one datum"] as number)
  return near(negative, one) ? "cross_entropy" : "importance_sampling"
}

async function isBounded(gradient: GradientSize, measured: Measured): Promise<boolean> {
  const { free, bounded } = await gradient.bounded()
  measured["a step"] = free
  measured["a step with its gradient bounded"] = bounded
  return Math.abs(bounded) < 0.1 * Math.abs(free)
}
