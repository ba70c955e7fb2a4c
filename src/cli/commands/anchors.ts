import type { Command } from "commander"
import { rollout } from "../../rollout/rollout.ts"
import { environmentTasks } from "../../rollout/tasks.ts"
import { expertLengths } from "../../sft/expert-lengths.ts"
import { type AnchorCoverage, type AnchorCoverageOptions, anchorCoverage } from "../../training/anchor-report.ts"
import { rolloutSetup } from "../../training/experience.ts"
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
      "Plays what the first iteration of training would play, and says how many steps were taken in a state that another episode of the " +
        "group has seen, too; where that is little, what to do. Says as well what there is to be told apart: how long episodes are against " +
        "the expert's, which steps led nowhere, and how often the limit on steps binds. Nothing is trained.",
    )
    .argument(...programArgument)
    .option(
      "-m, --model <directory>",
      "model folder to use instead of the configured one, or a run's: its newest state",
    )
    .option("--groups <count>", "groups to play; default training.groups", parseCount)
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
  const { environment, play } = player
  const screen = new Screen(process.stdout, options.json ? { live: false } : {})
  const moment = { iteration: 0, iterations }
  const training = { ...model, environment, play, options: { ...config.training, seed: config.seed } }
  const random = iterationRandom(training, moment.iteration)
  using tasks = environmentTasks(environment!, "train", random.fork("tasks"), say)
  const work = async (signal: AbortSignal) => {
    const setup = rolloutSetup({ ...training, signal }, moment, random)
    const { groups: played } = await rollout({
      ...setup,
      ...{ tasks, groupSize },
      groups: options.groups ?? groups,
      onEpisode: (done, total) => screen.show([`${formatBar(done, total, 20)}  episode ${done}/${total}`]),
    })
    const expert = { ...setup, random: random.fork("expert") }
    const lengths = () =>
      activity.during("the expert, who plays the same tasks", () => expertLengths(environment!, played, expert))
    return { played, expertSteps: play ? undefined : await lengths() }
  }
  const { played, expertSteps } = await containingStrays(configured.environment.name, signal, work, say)
  screen.clear()
  const report = anchorCoverage(played, { ...comparison(estimator), expertSteps })
  if (options.json) printJson({ environment: configured.environment.name, ...report })
  else for (const line of describe(report)) screen.print(line)
}

/** What the configured estimator compares steps by; of one without step groups, what GiGPO does. */
function comparison(estimator: object): AnchorCoverageOptions {
  if ("use" in estimator || !("similarity" in estimator)) return {}
  const { gamma, similarity } = estimator as AnchorCoverageOptions
  return { gamma, similarity }
}

/** Characters of an anchor that are shown. */
const longestShown = 60

function describe(report: AnchorCoverage): string[] {
  const { groups, constant, episodes, unscored, steps, states, grouped, shared, sharedLater, frequent, finding } =
    report
  const { compared, comparedAcross, length, wasted, cut, late } = report
  const rows = [
    ["groups", `${groups}, of which ${constant} with one and the same return`],
    ["episodes", `${episodes}${unscored > 0 ? `, and ${unscored} that failed or were dropped` : ""}`],
    ["steps", `${steps} in ${states} states of their groups`],
    ["shared", `${formatShare(grouped)} of the steps share their state with another step of the group`],
    ["", `${formatShare(shared)} with one of another episode; behind the first steps ${formatShare(sharedLater)}`],
    ["compared", `${formatShare(compared)} of the steps are worth more or less than another step from their state`],
    ["", `${formatShare(comparedAcross)} where two episodes meet; the others are loops within one`],
    ...(length === undefined ? [] : [["length", `${formatNumber(length)} times the steps that the expert takes`]]),
    ...(wasted === undefined
      ? []
      : [["wasted", `${formatShare(wasted)} of the steps of successes led back to where they had been`]]),
    ["cut", `${formatShare(cut)} of the episodes were ended by the limit on steps`],
    ...(late === undefined ? [] : [["", `${formatShare(late)} of the successes came in the last fifth of it`]]),
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
