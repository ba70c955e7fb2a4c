import { Command, InvalidArgumentError, Option } from "commander"
import type { Environment } from "../../environment/environment.ts"
import { environmentNames } from "../../environment/registry.ts"
import { GigpoError } from "../../errors.ts"
import { Random } from "../../random.ts"
import { playEpisode } from "../../rollout/episode.ts"
import { takeTasks } from "../../rollout/tasks.ts"
import { type ConfigArguments, commandLine, setOption } from "../arguments.ts"
import type { Config } from "../config/config.ts"
import { loadConfig, resolveConfig } from "../config/resolve.ts"
import { openConfiguredEnvironment, openPlayer } from "../model.ts"
import { expertPlayer, handPlayer, playActions } from "../play.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { PlayView } from "../terminal/play-view.ts"
import { Screen } from "../terminal/screen.ts"

interface PlayArguments extends ConfigArguments {
  readonly model?: string
  readonly expert?: boolean
  readonly byHand?: boolean
  readonly split: "train" | "test"
  readonly task: number
}

export function playCommand(): Command {
  return new Command("play")
    .summary("watch one episode, step by step")
    .description(
      "Shows one episode: the first prompt, what is observed, what the model replies, the action that was read from it and its reward. A model " +
        `plays a held-out task as "${commandLine("evaluate")}" has it play. An environment's name plays it as it is, without a ` +
        "configuration file; --set environment.<option>=<value> sets its options.",
    )
    .argument("<config>", `configuration file, or an environment: ${environmentNames.join(", ")}`)
    .addOption(setOption())
    .option("-m, --model <directory>", "model folder to use instead of the configured one, e.g. a run's model")
    .addOption(new Option("--expert", "let the environment's expert play").conflicts("byHand"))
    .option("--by-hand", "play yourself: one action a line, from the keyboard or a pipe")
    .addOption(new Option("--split <name>", "which tasks").choices(["train", "test"]).default("test"))
    .addOption(new Option("--task <index>", "which task of them, from 0").argParser(parseIndex).default(0))
    .action(runPlay)
}

async function runPlay(source: string, options: PlayArguments): Promise<void> {
  const config = environmentNames.includes(source) ? bareConfig(source, options) : await loadConfig(source, options.set)
  const environment = await openConfiguredEnvironment(config)
  const random = new Random(config.seed).fork("evaluation")
  const tasks = takeTasks(environment, options.split, random, options.task + 1)
  const task = tasks[options.task]
  if (task === undefined) throw tooFew(environment, options, tasks.length)
  const view = new PlayView(new Screen(process.stdout))
  const { environmentTimeout } = config.training.rollout
  const episode = { environment, task, random: random.fork(options.task, 0), environmentTimeout }
  await interruptible(async (signal) => {
    if (options.byHand || options.expert) {
      const player = options.byHand ? handPlayer(view, signal) : expertPlayer(environment, task)
      await playActions({ ...episode, signal, view, player })
    } else await playModel(config, options.model, { ...episode, signal }, view)
  })
}

/** The configuration that an environment's name alone stands for. */
function bareConfig(name: string, { set, model, expert, byHand }: PlayArguments): Config {
  if (model === undefined && !expert && !byHand)
    throw new GigpoError("BAD_ARGUMENT", `Say who plays ${name}: --expert, --by-hand or --model <directory>.`)
  return resolveConfig(`{ model: ${JSON.stringify(model ?? "none")}, environment: { name: ${name} } }`, set, name)
}

interface ModelEpisode {
  readonly environment: Environment
  readonly task: unknown
  readonly random: Random
  readonly signal: AbortSignal
}

async function playModel(
  config: Config,
  directory: string | undefined,
  episode: ModelEpisode,
  view: PlayView,
): Promise<void> {
  await using model = await openPlayer(config, directory)
  const { evaluation, rollout } = config.training
  const steps = playEpisode({
    ...rollout,
    temperature: evaluation.temperature,
    ...model,
    ...episode,
    maxPositions: model.policy.maxPositions,
  })
  let shown = 0
  for (;;) {
    const { done, value } = await steps.next()
    if (done) {
      if (value.last && value.outcome !== "overflow") view.observation(value.last, true)
      view.end(value.outcome, value.metrics)
      if (value.error) throw value.error
      return
    }
    if (shown++ === 0) view.prompt(episode.environment.prompt(episode.task, [], value.observation))
    view.observation(value.observation)
    view.step({ ...value, reply: value.text })
  }
}

function parseIndex(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 0.")
  return Number(text)
}

function tooFew({ name }: Environment, { split, task }: PlayArguments, count: number): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${name} has only ${count} ${split} tasks; --task ${task} must be below that.`)
}
