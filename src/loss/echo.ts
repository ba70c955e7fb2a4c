import { number, scheduled } from "../options/field.ts"
import { only, without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValue } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { largestReward } from "../util/largest-reward.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { defineLoss } from "./define-loss.ts"
import { clippedSurrogateFields } from "./options.ts"
import type { TokenLoss } from "./token-loss.ts"
import { withImitation } from "./with-imitation.ts"

const clipFields = without(clippedSurrogateFields, "importanceSamplingLevel", "skipZeroAdvantage")

/** Options of `echo`. */
export const echoFields = {
  ...clipFields,
  alpha: scheduled(
    number(0.1, "Weight α of the cross-entropy of observations, at least 0.", { min: 0, max: largestReward }),
  ),
}

/** Options of `echo`. */
export type EchoOptions = OptionsOf<typeof echoFields>

/**
 * Loss of ECHO, as prime-rl has it: the policy also learns to predict the observations that follow its actions.
 *
 *     clipped surrogate of the policy's tokens + α mean of -log p over the tokens of later observations
 *
 * A training adds the observations as off-policy sequences: the tokens between two completions of a growing conversation, and otherwise the text of
 * the next observation after a completion. The first prompt is not in the loss. Each term is divided by its own number of tokens. Reports the metrics
 * of `clippedSurrogate`, in which tokens of observations count as unclipped, with ratio 1, "policy/off-policy-fraction", the share of observations,
 * and "loss/cross-entropy", their cross-entropy.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const echo = defineLoss({
  name: "echo",
  fields: echoFields,
  about: {
    system: "ECHO",
    origin: "relative",
    changes: ["loss", "data"],
    equation: "clipped surrogate + α mean of -log p over the tokens of later observations, α = 0.1",
    source: "prime-rl",
    file: "src/loss/echo.ts",
    otherFiles: ["src/training/observation-rows.ts"],
    set: { "training.estimator.name": "grpo" },
    status: "exact",
    note: "prime-rl has it for conversations, with their messages of a role; where each step has a prompt of its own, the text of the next observation follows the completion: our generalization.",
  },
  make(given: EchoOptions = {}): TokenLoss {
    const options = readOptions("echo", given, echoFields)
    const surrogate = clippedSurrogate({ ...only(options, clipFields), skipZeroAdvantage: false })
    return {
      name: "echo",
      observations: true,
      evaluate: (input) =>
        withImitation(surrogate, input, {
          policy: 1,
          imitation: scheduleValue(options.alpha, input.progress),
          phi: false,
        }),
    }
  },
})
