import { number } from "../options/field.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { groupByAnchor } from "./anchors.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { keysOf, stepKey } from "./of-steps.ts"
import { outcomeFields, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { episodeReturns } from "./returns.ts"

/** Options of `rae`. */
export const raeFields = {
  decay: number(0.95, "Decay of an agent's baseline per episode, in [0, 1).", { min: 0, below: 1 }),
  kind: stepKey(
    undefined,
    "Game of a step, for a baseline per game and agent: the name of a metric of steps, or in programs a function of a step.",
    "one game",
  ),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

/** Options of `rae`. */
export type RaeOptions = OptionsOf<typeof raeFields>

/**
 * Role-conditioned advantage estimation (RAE, SPIRAL, arXiv 2506.24119) for games of several agents: A = R - b, with R the sum of the
 * rewards of the agent's own steps in the episode, and b a moving average of R over all episodes of that agent in that game:
 *
 *     b ← decay · b + (1 - decay) R, after the advantage is computed; b starts at 0
 *
 * An agent that wins more often by the rules of the game gets no credit for that. Advantages are not normalized, and groups are not needed.
 * The baselines are saved in checkpoints. Episodes are taken in the order of the batch. Without agents this is REINFORCE with a moving
 * baseline.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const rae = defineEstimator({
  name: "rae",
  fields: raeFields,
  about: {
    system: "RAE (SPIRAL)",
    origin: "baseline",
    changes: ["credit", "step-groups"],
    equation: "A = R - b of the agent, R from its own steps; then b = 0.95 b + 0.05 R",
    source: "arXiv 2506.24119; prime-rl",
    status: "exact",
    note: "Agents are named by the steps of agent programs. A baseline is updated after each use, as in prime-rl.",
  },
  make(options: RaeOptions = {}): Estimator<StepCredit> {
    let baselines: Readonly<Record<string, number>> = {}
    const settingsAt = (progress: TrainingProgress) => settle("rae", options, raeFields, progress)
    const estimator = paidEstimator("rae", settingsAt, {}, (batch, { decay, kind }): StepCredit => {
      const players = groupByAnchor(batch.episode, batch.agent ?? new Int32Array(batch.length))
      const returns = episodeReturns(batch.rewards, players)
      const kinds = kind === undefined ? [] : keysOf(kind, batch, "rae")
      const next: Record<string, number> = { ...baselines }
      const advantages = new Map<number, number>()
      for (const [row, player] of players.entries()) {
        if (advantages.has(player)) continue
        const name = JSON.stringify([kinds[row] ?? null, nameOf(batch, row)])
        const baseline = next[name] ?? 0
        advantages.set(player, returns[row]! - baseline)
        next[name] = decay * baseline + (1 - decay) * returns[row]!
      }
      baselines = next
      return { advantages: Float64Array.from(players, (player) => advantages.get(player)!) }
    })
    return {
      ...estimator,
      state: () => ({ json: baselines }),
      restore({ json }) {
        baselines = json as Record<string, number>
      },
    }
  },
})

/** Name of the agent of a step; null without agents. Ids differ between batches. */
function nameOf({ agent, agentNames }: Batch, row: number): string | number | null {
  return agent === undefined ? null : (agentNames?.[agent[row]!] ?? agent[row]!)
}
