import type { Replay } from "../credit/estimator.ts"
import { composeLoss } from "../loss/compose-loss.ts"
import { lossFields } from "../loss/options.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { only, without } from "../options/fixed.ts"
import type { ResolvedTrainOptions } from "./options.ts"
import { withoutPlace } from "./statistics.ts"

const replayFields = without(lossFields, "klWeight", "klEstimator", "teacherWeight", "teacherGate")

/** Replay of an estimator with the entropy bonus and the aggregation of the training, and without places in the iteration. */
export function replayOf({ sequences, loss, weight }: Replay, options: ResolvedTrainOptions["loss"]): Replay {
  const whole = scaled(composeLoss(loss, only(options, replayFields)), weight)
  return { sequences: sequences.map(withoutPlace), loss: whole, weight }
}

/** Loss times a constant. */
function scaled(loss: TokenLoss, weight: number): TokenLoss {
  const scale = (column: Float32Array) => column.map((value) => weight * value)
  return {
    ...loss,
    native: () => undefined,
    evaluate(input) {
      const output = loss.evaluate(input)
      const { gradient, entropyGradient } = output
      return {
        ...output,
        loss: weight * output.loss,
        gradient: scale(gradient),
        ...(entropyGradient && { entropyGradient: scale(entropyGradient) }),
      }
    },
  }
}
