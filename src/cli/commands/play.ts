import { type Command, Option } from "commander"
import type { Environment } from "../../environment/environment.ts"
import { environmentNames } from "../../environment/registry.ts"
import { isModuleFile } from "../../options/module-path.ts"
import { streamEpisode } from "../../rollout/episode.ts"
import { drawnTasks } from "../../rollout/tasks.ts"
import { GigpoError } from "../../util/errors.ts"
import { Pace } from "../../util/pace.ts"
import { Random } from "../../util/random.ts"
import { type ConfigArguments, commandLine, configArgument, setOption, trustOption, wholeNumber } from "../arguments.ts"
import type { Config } from "../config/config.ts"
import { applySet, parseConfigDocument } from "../config/document.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { loadConfig, loadDocument } from "../config/resolve.ts"
import { withLocalModel } from "../hub.ts"
import { openConfiguredEnvironment, openPlayer, resolveModel } from "../model.ts"
import { warnOfOther } from "../other-environment.ts"
import { expertPlayer, handPlayer, playActions } from "../play.ts"
import { activity } from "../terminal/activity.ts"
import { formatDuration } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { PlayView } from "../terminal/play-view.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"

interface PlayArguments extends ConfigArguments {
  readonly model?: string
  readonly expert?: boolean
  readonly byHand?: boolean
  readonly split: "train" | "test"
  readonly task: number
}

export function playCommand(command: Command): Command {
  return configArgument(
    command,
    `configuration file, a module (./mine.mjs), or an environment: ${environmentNames.join(", ")}`,
  )
    .description(
      "Shows one episode: the first prompt, observations, completions, parsed actions and rewards. A model " +
        `plays a held-out task as in "${commandLine("evaluate")}". The name of an environment, or the path of its module, works ` +
        "without a configuration file; --set environment.<option>=<value> sets its options.",
    )
    .addOption(setOption())
    .addOption(trustOption())
    .option(
      "-m, --model <directory>",
      "folder of a model or a run (its model, or a newer checkpoint), instead of the configured model",
    )
    .addOption(new Option("--expert", "let the environment's expert play").conflicts("byHand"))
    .option("--by-hand", "play yourself: one action per line, from the keyboard or a pipe")
    .addOption(new Option("--split <name>", "split of the tasks").choices(["train", "test"]).default("test"))
    .addOption(
      new Option("--task <index>", "index of the task in the split, from 0")
        .argParser(wholeNumber(0, 999_999_999))
        .default(0),
    )
    .action((source, options) => interruptible((signal) => runPlay(source, options, signal)))
}

async function runPlay(source: string, options: PlayArguments, signal: AbortSignal): Promise<void> {
  const bare = environmentNames.includes(source) || isModuleFile(source)
  const config = await (bare ? bareConfig(source, options) : loadConfig(source, options.set, options))
  const environment = await openConfiguredEnvironment(config)
  const random = new Random(config.seed).derive("evaluation")
  const task = await findTask(environment, random, options, signal)
  const screen = new Screen(process.stdout)
  const view = new PlayView(screen)
  const { environmentTimeout } = config.training.rollout
  const episode = { environment, task, random: random.derive(options.task, 0), environmentTimeout }
  const work = async (signal: AbortSignal) => {
    if (options.byHand || options.expert) {
      const player = options.byHand ? handPlayer(view, signal) : expertPlayer(environment, task)
      await playActions({ ...episode, signal, view, player })
    } else await playModel(config, options.model, { ...episode, signal }, view)
  }
  await containingStrays(environment.name, signal, work, (text) => screen.print(text))
}

/** Task at an index. Earlier tasks are drawn and discarded, since each follows from the state of the generator. */
async function findTask<Task>(
  environment: Environment<Task>,
  random: Random,
  { split, task: index }: PlayArguments,
  signal: AbortSignal,
): Promise<Task> {
  using tasks = drawnTasks(environment, split, random)
  const pace = new Pace(signal)
  const began = performance.now()
  let drawn = 0
  const describe = () => {
    const seconds = (performance.now() - began) / 1000
    const left = drawn === 0 ? "" : `, about ${formatDuration((seconds / drawn) * (index - drawn))} left`
    return `drawing task ${drawn.toLocaleString("en-US")} of ${index.toLocaleString("en-US")}${left}`
  }
  return await activity.during(describe, async () => {
    for (; ; drawn++) {
      if (pace.due()) await pace.rest()
      const task = tasks.next()
      if (task === undefined)
        throw new GigpoError(
          "BAD_ARGUMENT",
          `${environment.name} has only ${drawn} ${split} tasks; --task ${index} must be below that.`,
        )
      if (drawn === index) return task
    }
  })
}

/** Configuration for the name of an environment or the path of its module alone. */
async function bareConfig(name: string, { set, model, expert, byHand }: PlayArguments): Promise<Config> {
  if (model === undefined && !expert && !byHand)
    throw new GigpoError("BAD_ARGUMENT", `Choose a player for ${name}: --expert, --by-hand or --model <directory>.`)
  const parsed = parseConfigDocument(JSON.stringify({ model: model ?? "none", environment: { name } }), name)
  for (const one of set) applySet(parsed, one)
  // Without a file there are no line numbers to report.
  const where: typeof parsed.where = (path) =>
    parsed.where(path).startsWith(`${name}, line `) ? name : parsed.where(path)
  return await loadDocument({ ...parsed, where }, ".")
}

interface ModelEpisode {
  readonly environment: Environment
  readonly task: unknown
  readonly random: Random
  readonly signal: AbortSignal
}

async function playModel(
  given: Config,
  directory: string | undefined,
  episode: ModelEpisode,
  view: PlayView,
): Promise<void> {
  const resolved = directory === undefined ? undefined : await resolveModel(directory, episode.signal)
  const config = resolved === undefined ? await withLocalModel(given, episode.signal) : given
  await checkConfiguredLengths(config, resolved)
  const say = (text: string) => new Screen(process.stderr, { live: false }).print(text)
  await warnOfOther(config, resolved ?? config.model, episode.environment.name, say)
  await using model = await openPlayer(config, episode.signal, resolved)
  const { evaluation, rollout } = config.training
  const steps = streamEpisode({
    ...rollout,
    temperature: evaluation.temperature,
    ...model,
    ...episode,
    maxPositions: model.policy.maxPositions,
  })
  let shown = 0
  const completion = () => `sampling the completion of step ${shown + 1}`
  for (;;) {
    const { done, value } = await activity.during(completion, () => steps.next())
    if (done) {
      if (value.last && value.outcome !== "overflow") view.observation(value.last, true)
      view.end(value.outcome, value.metrics)
      if (value.error) throw value.error
      return
    }
    if (shown++ === 0) view.prompt(episode.environment.prompt(episode.task, [], value.observation))
    view.observation(value.observation)
    view.step({ ...value, completion: value.text })
  }
}
