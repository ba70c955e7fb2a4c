import { checkArguments } from "../options/arguments.ts"
import { integer } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { checkMethods } from "../rollout/check-setup.ts"
import type { Group } from "../rollout/hooks.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { evaluateFields } from "../training/evaluation-options.ts"
import { besidePlayer, type HeldOutSetup, playHeldOut } from "../training/held-out.ts"
import { isSolved, outcomeOf } from "../training/summary.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import { version } from "../util/version.ts"
import type { EvaluatedEpisode, EvaluationHeader, PanelEvaluation } from "./evaluation-file.ts"
import { pick, plainOptions, speech, worldOf } from "./options.ts"
import type { Panel } from "./panel.ts"
import { type PanelReport, reportPanel } from "./report.ts"
import type { PanelTask } from "./tasks.ts"

export const panelFields = {
  ...without(evaluateFields, "tasks"),
  repeats: integer(1, "Episodes per task.", { min: 1, max: 10_000 }),
}

/** Arguments of `evaluatePanel`. */
export interface EvaluatePanelSetup<Task = unknown>
  extends OptionsOf<typeof panelFields>,
    Omit<HeldOutSetup<Task>, "environment"> {
  /** Panel from `openPanel`. */
  readonly panel: Panel<Task>
  /** Model, for the file: its `name`, and the SHA-256 of its weights as `sha256`. */
  readonly model?: EvaluationHeader["model"]
}

/**
 * Evaluates a policy on all tasks of a panel, with `repeats` episodes each. Random numbers of the environment are keyed by panel and task; those
 * of the policy by seed, panel, task and repeat. Results do not depend on the concurrency.
 *
 * @returns `evaluation`, for `writeEvaluation`, and its `report`
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option, and the errors of `evaluate`.
 */
export async function evaluatePanel<Task>(
  setup: EvaluatePanelSetup<Task>,
): Promise<{ readonly evaluation: PanelEvaluation; readonly report: PanelReport }> {
  checkArguments("evaluatePanel", setup)
  const { panel, model, ...given } = setup
  if (Object.hasOwn(given, "environment"))
    throw new GigpoError("BAD_ARGUMENT", "evaluatePanel: the panel has an environment; leave environment out.")
  const { seed, repeats, rollout, temperature } = readOptions("evaluatePanel", besidePlayer(given), panelFields)
  checkMethods("panel", panel, [])
  if (!Array.isArray(panel.tasks)) throw new GigpoError("BAD_ARGUMENT", "panel must be a panel from openPanel.")
  const { groups, ...failures } = await playHeldOut(
    "evaluatePanel",
    { ...setup, environment: panel.environment },
    {
      tasks: panel.tasks.map(({ task }) => task),
      groups: panel.tasks.length,
      groupSize: repeats,
      random: new Random(seed).derive("panel", panel.name),
      ...rollout,
      // The panel determines the maximum number of steps.
      maxSteps: rolloutDefaults.maxSteps,
      temperature,
    },
  )
  const { maxCompletionTokens, maxRetries: retries } = rollout
  const environment = plainOptions({ ...worldOf(panel.options), ...pick(panel.options, speech) })
  const header: EvaluationHeader = {
    evaluation: 1,
    gigpo: version,
    panel: panel.name,
    digests: panel.digests,
    ...(model && { model }),
    tasks: panel.tasks.length,
    repeats,
    seed,
    settings: { temperature, maxCompletionTokens, retries, environment },
  }
  const evaluation = { header, episodes: panel.tasks.flatMap((task, index) => linesOf(groups[index]!, index, task)) }
  return { evaluation, report: { ...reportPanel(evaluation), ...failures } }
}

function linesOf({ episodes }: Group, task: number, { key, kind }: PanelTask): EvaluatedEpisode[] {
  return episodes.map((episode, repeat) => {
    const played = outcomeOf(episode)
    return { task, repeat, key, ...(kind !== undefined && { kind }), ...played, success: isSolved(episode) }
  })
}
