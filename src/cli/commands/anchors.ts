import type { Command } from "commander"
import { rollout } from "../../rollout/rollout.ts"
import { environmentTasks } from "../../rollout/tasks.ts"
import { expertLengths } from "../../sft/expert-lengths.ts"
import { type AnchorCoverage, type AnchorCoverageOptions, anchorCoverage } from "../../training/anchor-report.ts"
import { rolloutSetup } from "../../training/played.ts"
import { playerOf } from "../../training/player.ts"
import { iterationRandom } from "../../training/prepare.ts"
import { type ConfigArguments, configCommand, programArgument, programSets } from "../arguments.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { loadConfig } from "../config/resolve.ts"
import { checkCount } from "../config/sizes.ts"
import { parseCount } from "../estimate/arguments.ts"
import { withLocalModel } from "../hub.ts"
import { configuredPlayer, openPlayer, resolveModel } from "../model.ts"
import { warnOfOther } from "../other-environment.ts"
import { activity } from "../terminal/activity.ts"
import { formatBar, formatNumber, formatShare } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"

interface AnchorArguments extends ConfigArguments {
  readonly model?: string
  readonly groups?: number
  readonly json?: boolean
}

export function anchorsCommand(command: Command): Command {
  return configCommand(command)
    .description(
      "Runs the rollout of the first training iteration and reports the share of steps whose state occurs in another episode of the group, " +
        "with advice if it is low. Also reports the length of episodes relative to " +
        "the expert's, how many steps are in loops, and how many episodes are truncated. Trains nothing.",
    )
    .argument(...programArgument)
    .option(
      "-m, --model <directory>",
      "folder of a model or a run (its model, or a newer checkpoint), instead of the configured model",
    )
    .option("--groups <count>", "number of groups; default: training.groups", parseCount)
    .option("--json", "print the result as one JSON line")
    .action((file, program, options) => interruptible((signal) => runAnchors(file, program, options, signal)))
}

async function runAnchors(
  file: string,
  program: readonly string[],
  options: AnchorArguments,
  signal: AbortSignal,
): Promise<void> {
  const given = await loadConfig(file, [...options.set, ...programSets(program)], options)
  const config = options.model === undefined ? await withLocalModel(given, signal) : given
  const { groupSize, groups, estimator, iterations } = config.training
  checkCount(
    (options.groups ?? groups) * groupSize,
    `--groups ${options.groups ?? groups} × training.groupSize=${groupSize}`,
  )
  const directory = options.model === undefined ? undefined : await resolveModel(options.model, signal)
  await checkConfiguredLengths(config, directory)
  await using configured = await configuredPlayer(config)
  await using model = await openPlayer(config, signal, directory)
  const say = (text: string) => new Screen(process.stderr, { live: false }).print(text)
  await using player = playerOf(configured)
  await warnOfOther(config, directory ?? config.model, configured.environment.name, say)
  const { environment, agentLoop } = player
  const screen = new Screen(process.stdout, options.json ? { live: false } : {})
  const progress = { iteration: 0, iterations }
  const training = { ...model, environment, agentLoop, options: { ...config.training, seed: config.seed } }
  const random = iterationRandom(training, progress.iteration)
  using tasks = environmentTasks(environment!, "train", random.derive("tasks"), say)
  const work = async (signal: AbortSignal) => {
    const setup = rolloutSetup({ ...training, signal }, progress, random)
    const { groups: played } = await rollout({
      ...setup,
      ...{ tasks, groupSize },
      groups: options.groups ?? groups,
      onEpisode: (done, total) => screen.show([`${formatBar(done, total, 20)}  episode ${done}/${total}`]),
    })
    const expert = { ...setup, random: random.derive("expert") }
    const lengths = () =>
      activity.during("the expert on the same tasks", () => expertLengths(environment!, played, expert))
    return { played, expertSteps: agentLoop ? undefined : await lengths() }
  }
  const { played, expertSteps } = await containingStrays(configured.environment.name, signal, work, say)
  screen.clear()
  const report = anchorCoverage(played, { ...comparison(estimator), expertSteps })
  if (options.json) printJson({ environment: configured.environment.name, ...report })
  else for (const line of describe(report)) screen.print(line)
}

/**
 * Options of the configured estimator for the comparison of steps; GiGPO's defaults for an estimator without step
 * groups.
 */
function comparison(estimator: object): AnchorCoverageOptions {
  if ("use" in estimator || !("similarity" in estimator)) return {}
  const { gamma, similarity } = estimator as AnchorCoverageOptions
  return { gamma, similarity }
}

/** Maximum characters of an anchor in the output. */
const longestShown = 60

function describe(report: AnchorCoverage): string[] {
  const { groups, constant, episodes, unscored, steps, states, grouped, shared, sharedLater, frequent, finding } =
    report
  const { nonzero, nonzeroAcross, length, loopSteps, truncated, nearLimit } = report
  const rows = [
    ["groups", `${groups}, ${constant} with all returns equal`],
    ["episodes", `${episodes}${unscored > 0 ? `, plus ${unscored} failed or excluded` : ""}`],
    ["steps", `${steps} in ${states} anchor states`],
    ["shared", `${formatShare(grouped)} of the steps share their anchor state with another step of the group`],
    ["", `${formatShare(shared)} with a step of another episode; without first steps ${formatShare(sharedLater)}`],
    [
      "compared",
      `${formatShare(nonzero)} of the steps have another discounted return than a step in the same anchor state`,
    ],
    ["", `${formatShare(nonzeroAcross)} across episodes; the rest are loops within one episode`],
    ...(length === undefined ? [] : [["length", `${formatNumber(length)} times the expert's steps`]]),
    ...(loopSteps === undefined
      ? []
      : [["loops", `${formatShare(loopSteps)} of the steps of successful episodes returned to an earlier state`]]),
    ["truncated", `${formatShare(truncated)} of the episodes were truncated by the step limit`],
    ...(nearLimit === undefined
      ? []
      : [["", `${formatShare(nearLimit)} of the successes came in the last fifth of the limit`]]),
  ]
  return [
    ...rows.map(([name, value]) => `  ${name!.padEnd(12)}${value}`),
    ...frequent.map(
      ({ anchor, steps, episodes }) => `  ${String(steps).padStart(6)} × in ${episodes} episodes: ${shown(anchor)}`,
    ),
    finding.text,
  ]
}

function shown(anchor: string): string {
  const text = JSON.stringify(anchor) // on one line
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text
}
