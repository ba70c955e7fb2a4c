import { valueLoss } from "../../src/kernels/value-loss.ts"
import { read, type Table, type Topic } from "./topic.ts"

/** The critic's loss. Its own factor is ½, its mean that over tokens: a vector of another is rejected. */
const value_loss: Topic = ({ params, inputs }) => {
  const { factor = 0.5, aggregation = "token-mean" } = params
  if (factor !== 0.5 || aggregation !== "token-mean")
    throw new Error(`its factor is ${factor} and its aggregation ${aggregation}, not 0.5 and token-mean`)
  const table = (name: string) => Float64Array.from(read<Table>(inputs, name).flat())
  const prediction = read<Table>(inputs, "prediction")
  const found = valueLoss(
    {
      values: table("prediction"),
      returns: table("returns"),
      oldValues: table("old_value"),
      ...(inputs.mask !== undefined && { mask: table("mask") }),
    },
    { clip: read<number>(params, "clip") },
  )
  let at = 0
  const dprediction = prediction.map(({ length }) => {
    at += length
    return Array.from(found.gradient.subarray(at - length, at))
  })
  return { loss: found.loss, dprediction, clip_fraction: found.clipFraction }
}

export const criticTopics: Readonly<Record<string, Topic>> = { value_loss }
