import type { FailureReason } from "../../runs/failure-reasons.ts"
import { metricTitle } from "../../runs/metrics.ts"
import { minEntropy } from "../../training/guards/default-bounds.ts"
import { formatNumber, formatShare } from "../../util/format.ts"
import { type Finding, type Overview, overviewMetrics } from "./overview.ts"
import { trainingOption } from "./settings.ts"
import type { RunInfo } from "./source.ts"

interface About extends Pick<Overview, "metrics" | "evaluation" | "warnings"> {
  readonly settings: RunInfo["settings"]
  /** Last iteration. */
  readonly last: number
  /** Names of the metrics of the last iteration that are not finite. */
  readonly nonFinite: readonly string[]
}

/** Shares from which the page names a problem; the guards warn later, when a run seldom recovers. */
const most = { constant: 0.6, invalid: 0.3, truncated: 0.1, failed: 0.05 }
/** Number of iterations for which a warning of a guard is current. */
const current = 10

/** Problems of a run, the most important first. */
export function findingsOf(about: About, failures: readonly FailureReason[]): Finding[] {
  const { metrics, evaluation, settings, warnings, last, nonFinite } = about
  const { constant, valid, truncated, failed, entropy } = metrics
  // Where most actions are invalid, the returns are equal whatever the tasks are.
  const success = valid && 1 - valid.now >= most.invalid ? undefined : metrics.success?.now
  const bound = trainingOption({ settings }, "guards.minEntropy") ?? minEntropy
  const found: (Finding | false | undefined)[] = [
    nonFinite.length > 0 && {
      text: `${nonFinite.slice(0, 3).map(metricTitle).join(", ")}: the last value is not finite.`,
    },
    evaluation?.fell && {
      tile: "evaluation",
      text:
        `The last evaluation (${formatShare(evaluation.last)}, iteration ${evaluation.lastIteration}) is clearly below the best one ` +
        `(${formatShare(evaluation.best)}, iteration ${evaluation.bestIteration}).`,
    },
    failed &&
      failed.now >= most.failed && {
        tile: "failed",
        text: `${formatShare(failed.now)} of the episodes failed${failures[0] ? `, mostly with: ${failures[0].reason}` : "."}`,
      },
    valid &&
      1 - valid.now >= most.invalid && {
        tile: "valid",
        text: `${formatShare(1 - valid.now)} of the actions are invalid: the model misses the format of actions.`,
      },
    constant &&
      constant.now >= most.constant && {
        tile: "constant",
        text: `${formatShare(constant.now)} of the groups gave no signal, because all their returns are equal${causeOf(success)}.`,
      },
    entropy &&
      typeof bound === "number" &&
      entropy.now < bound && {
        tile: "entropy",
        text: `The entropy has collapsed to ${formatNumber(entropy.now)} nats: all completions are nearly the same.`,
      },
    truncated &&
      truncated.now >= most.truncated && {
        tile: "truncated",
        text: `${formatShare(truncated.now)} of the completions are truncated at the length limit (rollout.maxCompletionTokens).`,
      },
  ]
  const problems = found.filter((one) => one !== false && one !== undefined)
  const guards = warnings
    // A problem that the page has named already is not named again.
    .filter(
      ({ iteration, text }) =>
        iteration > last - current &&
        !problems.some(
          ({ tile }) =>
            tile &&
            tile !== "evaluation" &&
            [`guard/${tile}`, overviewMetrics[tile]].some((name) => text.includes(`(${name})`)),
        ),
    )
    .map(
      ({ iteration, text }): Finding => ({
        text: `Guard in iteration ${iteration}: ${text.replace(/(?<=\S\.) .*/s, "")}`,
      }),
    )
  return [...problems, ...guards.slice(-1)]
}

/** Why groups may have equal returns. */
function causeOf(success: number | undefined): string {
  if (success === undefined) return ""
  return success >= 0.5 ? ": the tasks are too easy" : ": the tasks are too hard"
}
