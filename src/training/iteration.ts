import type { TrainingProgress } from "../options/schedule.ts"
import { failuresOf, playerName } from "../runs/failure-reasons.ts"
import type { IterationReport } from "../runs/report.ts"
import { Pace } from "../util/pace.ts"
import { checkCriticSteps } from "./critic.ts"
import { collect, type Experience } from "./experience.ts"
import type { CollapseDetector } from "./guards/collapse.ts"
import type { StepGuard } from "./guards/non-finite.ts"
import { adaptKl } from "./kl.ts"
import { rolloutMetrics, Stopwatch, updateMetrics } from "./metrics.ts"
import type { Training } from "./prepare.ts"
import type { Rollouts } from "./rollouts.ts"
import { update } from "./update.ts"

/** Result of one iteration. */
export interface Iteration extends Experience {
  readonly report: IterationReport
  /** Alarms of collapse. */
  readonly alarms: readonly string[]
}

/** Parts of a training run that have a state of their own. */
export interface IterationParts<Task> {
  readonly steps: StepGuard
  readonly collapse: CollapseDetector
  readonly rollouts: Rollouts<Task>
}

/** Runs one iteration: rollout, advantages, updates and report. `onChange` is called before each change of the weights. */
export async function runIteration<Task>(
  training: Training<Task>,
  { steps, collapse, rollouts }: IterationParts<Task>,
  progress: TrainingProgress,
  onChange: () => void,
): Promise<Iteration> {
  const { options, kl, onWarning } = training
  const iteration = progress.iteration + 1
  const clock = new Stopwatch()
  const experience = await collect(training, progress, clock, rollouts)
  const { groups, dropped, sequences, credit, replay } = experience
  const pace = new Pace()
  const played = await pace.through(rolloutMetrics(groups, credit, dropped, options.rollout.minGroupSize))
  await pace.rest()
  const totals = await update(training, steps, sequences, progress, onChange, replay)
  if (totals.critic) checkCriticSteps(totals.critic, options.guards.maxNonFinite, iteration, onWarning)
  clock.lap("update")
  // Metrics of estimators and losses come first, so that they do not replace the others.
  const updated = { ...credit.metrics, ...experience.metrics, ...updateMetrics(totals) }
  const adapted = adaptKl(kl, updated, experience.steps.length)
  const all = [...groups, ...dropped]
  const watched = await pace.through(collapse.look(all, { ...updated, ...played }))
  await pace.rest()
  const metrics = { ...updated, ...adapted, ...watched.metrics, ...played, ...clock.metrics(experience.steps) }
  const report = { iteration, metrics, ...failuresOf(all, playerName(training)) }
  await pace.rest() // observers also begin with a pass over all steps
  return { ...experience, report, alarms: watched.alarms }
}
