import { dirname, join, relative } from "node:path"
import { type Command, InvalidArgumentError, Option } from "commander"
import { GigpoError } from "../../errors.ts"
import { unlessAborted } from "../../linked-abort.ts"
import { without } from "../../options/fixed.ts"
import { needsOf } from "../../training/make.ts"
import { readReports } from "../../training/metrics-log.ts"
import type { IterationReport } from "../../training/options.ts"
import { Run } from "../../training/run.ts"
import { changeableKeys } from "../../training/run-config.ts"
import { runFiles } from "../../training/run-files.ts"
import { checkRunFolder, liesIn, type RunMode } from "../../training/run-folder.ts"
import { settleRates } from "../../training/settle-rates.ts"
import { train } from "../../training/train.ts"
import { recordEpisodes } from "../../view/record/recorder.ts"
import { type ConfigArguments, commandLine, configCommand, programArgument, programSets } from "../arguments.ts"
import type { Config } from "../config/config.ts"
import { complete, placeKeys } from "../config/kept.ts"
import { configuredPlayer, configuredTraining } from "../config/modules.ts"
import { loadConfig } from "../config/resolve.ts"
import { configuredSinks } from "../config/sinks.ts"
import { describePlace, openModel, precisionOf } from "../model.ts"
import { openTeacher } from "../teacher.ts"
import { chosenRate } from "../terminal/chosen-rate.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"
import { describeEvaluation, TrainingView } from "../terminal/training-view.ts"

interface TrainArguments extends ConfigArguments, RunMode {
  readonly json?: boolean
}

const whereItGoes =
  "Metrics (metrics.jsonl), checkpoints and at the end the model go to the run folder. Ctrl-C stops after saving; a second " +
  "Ctrl-C stops at once."

export function trainCommand(): Command {
  return trainingCommand("train", "train a model by reinforcement learning")
    .description(`Trains the configured model in the configured environment. ${whereItGoes}`)
    .action((file, options) => interruptible((signal) => runTrain(file, options, signal), { saves: true }))
}

export function gatewayCommand(): Command {
  return trainingCommand("gateway", "train the model of an agent that is a program in any language")
    .description(
      `Trains as "${commandLine("train")}" does, with a program that plays the tasks: gigpo gateway config.yaml -- node agent.mjs. It is ` +
        "started once an episode and calls the model as any client of OpenAI's, at OPENAI_BASE_URL with OPENAI_API_KEY; GIGPO_MODEL is the " +
        "name to ask for, GIGPO_TASK the task as JSON. The last line that it prints is its reward: a number or " +
        `{"reward": …, "success": …}. How long an episode may take is training.rollout.episodeTimeout, how many run at once ` +
        `training.rollout.concurrency. ${whereItGoes}`,
    )
    .argument(...programArgument)
    .action((file, program, options) =>
      interruptible((signal) => runTrain(file, options, signal, program), { saves: true }),
    )
}

function trainingCommand(name: string, summary: string): Command {
  return configCommand(name, summary)
    .addOption(
      new Option("--resume [auto]", "go on from the run's last checkpoint; auto begins it where there is none")
        .conflicts("overwrite")
        .argParser(parseResume),
    )
    .option("--overwrite", "replace the run that is there, once this one has saved something; others' files stay")
    .option("--fork <folder>", "begin a new run with the state of another: its folder, or a checkpoint")
    .option("--json", "print one JSON line an iteration instead of the display")
}

function parseResume(text: string): "auto" {
  if (text === "auto") return text
  throw new InvalidArgumentError("It takes auto or nothing; the configuration comes before it.")
}

/** Settings that a resumed run may change: what ends and keeps it, and where and how fast it runs. */
const mayChange = [...changeableKeys, ...placeKeys, "clone", "initialize"]

/** @param program - what an agent is to be, behind the `--` of gigpo gateway. */
async function runTrain(
  file: string,
  options: TrainArguments,
  signal: AbortSignal,
  program?: readonly string[],
): Promise<void> {
  const sets = [...options.set, ...programSets(program ?? [])]
  const config = await unlessAborted(signal, () => loadConfig(file, sets))
  if (program && !config.agent)
    throw new GigpoError(
      "BAD_CONFIG",
      `There is no agent: ${commandLine("gateway", file)} -- node agent.mjs, or set agent in ${file}.`,
    )
  await using player = await unlessAborted(signal, () => configuredPlayer(config))
  const training = await configuredTraining(config)
  const sinks = configuredSinks(config)
  // Refuse before a large model is read, but replace nothing before it has been.
  await checkRunFolder(config.run, options)
  if (options.overwrite) await checkModelOutside(config)
  const needs = needsOf(training)
  await using teacher = await openTeacher(config, needs, signal)
  await using model = await openModel(config, signal, needs)
  const screen = new Screen(process.stdout, options.json ? { live: false } : {})
  const say = (text: string) => (options.json ? new Screen(process.stderr, { live: false }) : screen).print(text)
  const settled = settleRates(config.training, model.policy)
  const { optimizer, critic } = settled
  // Kept, so that the run goes on with the same rates in another version, and in the same precision on another device.
  const kept = { ...config, ...precisionOf(model.policy), training: settled }
  const mode: RunMode = without(options, "set", "json")
  await using run = await Run.open(config.run, kept, { ...mode, mayChange, complete, onWarning: say })
  const place = describePlace(model.policy)
  if (place !== undefined) say(place)
  const { iterations } = config.training
  if (run.iteration > 0)
    say(`${options.fork ? "Forked" : "Resuming"} after iteration ${run.iteration} of ${iterations}.`)
  else if (config.training.optimizer.learningRate === undefined)
    say(chosenRate("training.optimizer.learningRate", settled.optimizer, model.policy))

  say(`To see it in a browser while it goes on: ${commandLine("view", config.run)}`)

  const view = new TrainingView(screen, iterations, run.iteration, await reportsBefore(run))
  const work = async (signal: AbortSignal) => {
    const stopping = () => say("Stopping; the state is being saved. Ctrl-C again stops at once.")
    signal.addEventListener("abort", stopping, { once: true })
    const recorder = recordEpisodes({ ...config.episodes, tokenizer: model.tokenizer, onWarning: say })
    const observers = [recorder, ...sinks, ...view.observers]
    const setup = {
      ...model,
      teacher,
      ...player,
      run,
      ...training,
      optimizer,
      critic,
      observers,
      signal,
      onWarning: say,
    }
    for await (const report of train({ ...setup, onProgress: (progress) => view.progress(progress) })) {
      if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`)
      else view.report(report)
    }
    return await run.saveModel({ store: model.policy.store, files: model.tokenizer.files })
  }
  const sayOutcome = async () => {
    for (const failure of view.failures) say(`Failed: ${failure}.`)
    await sayBest(run, config, say)
  }
  try {
    const path = await containingStrays(player.environment.name, signal, work, say)
    screen.keep()
    const saved = relative(process.cwd(), path)
    await sayOutcome()
    say(`The trained model is in ${saved}. To evaluate it: ${nextCommand("evaluate", config, "--model", saved)}`)
  } catch (error) {
    screen.keep()
    if (!run.begun) throw error
    await sayOutcome().catch(() => {}) // what went wrong first is what to tell
    const goOn = nextCommand("train", config, "--resume")
    if (run.replaces) say(`Nothing was saved; the run that was in ${config.run} before is there again.`)
    else if (run.saved) say(`The state after iteration ${run.iteration} is saved. To go on: ${goOn}`)
    else if (signal.aborted) say(`Nothing was saved yet. To begin again: ${goOn}`)
    else say(`Nothing was saved yet. Once that is mended, to begin again: ${goOn}`)
    throw error
  }
}

/** What a run that goes on, or the one that it is a fork of, reported before. */
async function reportsBefore({ checkpoint }: Run): Promise<readonly IterationReport[]> {
  return checkpoint ? await readReports(join(dirname(dirname(checkpoint.directory)), runFiles.metrics)) : []
}

/** Which evaluation was the best, where it is not that of the last state. */
async function sayBest(run: Run, config: Config, say: (text: string) => void): Promise<void> {
  const best = await run.best()
  if (!best || best.iteration >= run.iteration) return
  const { iteration, evaluation, directory } = best
  const found = describeEvaluation(evaluation)
  if (directory === undefined) {
    say(`The best evaluation was that before the first iteration: ${found}. Training has not made the model better.`)
    return
  }
  const model = relative(process.cwd(), directory)
  say(
    `The best evaluation was after iteration ${iteration}: ${found}. To evaluate that model: ${nextCommand("evaluate", config, "--model", model)}`,
  )
}

/** The run keeps its configuration, with the settings of this command line in it. */
function nextCommand(command: string, { run }: Config, ...flags: string[]): string {
  return commandLine(command, join(run, "config.json"), ...flags)
}

/** Overwriting a run would take the model away that it is to start from. */
async function checkModelOutside({ model, run }: Config): Promise<void> {
  if (!(await liesIn(model, run))) return
  throw new GigpoError(
    "BAD_CONFIG",
    `The model ${model} lies in the run folder ${run}, which --overwrite would remove. Choose another folder for the run.`,
  )
}
