import { dirname, join, relative } from "node:path"
import { type Command, InvalidArgumentError, Option } from "commander"
import { isThere } from "../../files/io-error.ts"
import { without } from "../../options/fixed.ts"
import { changeableKeys } from "../../runs/config.ts"
import { runFiles } from "../../runs/files.ts"
import { checkRunFolder, liesIn, type RunMode } from "../../runs/folder.ts"
import { readReports } from "../../runs/metrics-log.ts"
import type { IterationReport } from "../../runs/report.ts"
import { Run } from "../../runs/run.ts"
import { needsOf } from "../../training/make.ts"
import { resolveLearningRates } from "../../training/settle-rates.ts"
import { train } from "../../training/train.ts"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { recordEpisodes } from "../../view/record/recorder.ts"
import { type ConfigArguments, commandLine, configCommand, programArgument, programSets } from "../arguments.ts"
import type { Config } from "../config/config.ts"
import { complete, placeKeys } from "../config/kept.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { configuredPlayer, configuredTraining } from "../config/modules.ts"
import { noteOwnRun } from "../config/own-run.ts"
import { loadConfig } from "../config/resolve.ts"
import { configuredSinks } from "../config/sinks.ts"
import { checkTrainingSize } from "../config/sizes.ts"
import { fetchWeights, keptModels, withLocalModels } from "../hub.ts"
import { describePlace, openModel, precisionOf } from "../model.ts"
import { warnOfOther } from "../other-environment.ts"
import { openTeacher } from "../teacher.ts"
import { activity } from "../terminal/activity.ts"
import { chosenRate } from "../terminal/chosen-rate.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"
import { describeEvaluation, TrainingView } from "../terminal/training-view.ts"

interface TrainArguments extends ConfigArguments, RunMode {
  readonly json?: boolean
}

const whereItGoes =
  "Metrics (metrics.jsonl), checkpoints and at the end the model go to the run folder. Ctrl-C stops after saving; a second " +
  "Ctrl-C stops at once."

export function trainCommand(command: Command): Command {
  return trainingCommand(command)
    .description(`Trains the configured model in the configured environment. ${whereItGoes}`)
    .action((file, options) => interruptible((signal) => runTrain(file, options, signal), { saves: true }))
}

export function gatewayCommand(command: Command): Command {
  return trainingCommand(command)
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

function trainingCommand(command: Command): Command {
  return configCommand(command)
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
const mayChange = [...changeableKeys, ...placeKeys, "sft", "initialize"]

/** @param program - what an agent is to be, behind the `--` of gigpo gateway. */
async function runTrain(
  file: string,
  options: TrainArguments,
  signal: AbortSignal,
  program?: readonly string[],
): Promise<void> {
  const sets = [...options.set, ...programSets(program ?? [])]
  const given = await unlessAborted(signal, () => loadConfig(file, sets, { ...options, writes: ["run"] }))
  if (program && !given.agent)
    throw new GigpoError(
      "BAD_CONFIG",
      `There is no agent: ${commandLine("gateway", file)} -- node agent.mjs, or set agent in ${file}.`,
    )
  checkTrainingSize(given)
  const config = await withLocalModels(given, { signal, weights: false })
  await checkConfiguredLengths(config)
  await using player = await unlessAborted(signal, () => configuredPlayer(config))
  const training = await configuredTraining(config)
  const sinks = configuredSinks(config)
  // Refuse before a large model is read, but replace nothing before it has been.
  await checkRunFolder(config.run, options)
  if (options.overwrite) await checkModelOutside(config)
  const needs = needsOf(training)
  await fetchWeights(given, config, signal)
  await using teacher = await openTeacher(config, needs, signal)
  await using model = await openModel(config, signal, needs)
  const screen = new Screen(process.stdout, options.json ? { live: false } : {})
  const say = (text: string) => (options.json ? new Screen(process.stderr, { live: false }) : screen).print(text)
  await warnOfOther(config, config.model, player.environment.name, say)
  const settled = resolveLearningRates(config.training, model.policy)
  const { optimizer, critic } = settled
  // Kept, so that the run goes on with the same rates in another version, and in the same precision on another device.
  const kept = { ...config, ...keptModels(given, config), ...precisionOf(model.policy), training: settled }
  const mode: RunMode = without(options, "set", "json", "trust")
  await using run = await Run.open(config.run, kept, { ...mode, mayChange, complete, onWarning: say })

  const { iterations } = config.training
  // Told once all has been checked: what is refused has not begun.
  const begin = () => {
    const place = describePlace(model.policy)
    if (place !== undefined) say(place)
    if (run.iteration > 0) say(`${beginning(run)} after iteration ${run.iteration} of ${iterations}.`)
    else if (config.training.optimizer.learningRate === undefined)
      say(chosenRate("training.optimizer.learningRate", settled.optimizer, model.policy))
    say(`To see it in a browser while it runs: ${commandLine("view", config.run)}`)
  }
  const view = new TrainingView(screen, iterations, run.iteration, await reportsBefore(run))
  const work = async (signal: AbortSignal) => {
    const stopping = () => say("Stopping; the state is being saved. Ctrl-C again stops at once.")
    signal.addEventListener("abort", stopping, { once: true })
    const recorder = recordEpisodes({ ...config.episodes, tokenizer: model.tokenizer, onWarning: say })
    const noted = {
      name: "the note of this run as your own",
      start: () => noteOwnRun(join(run.directory, runFiles.config)),
    }
    const observers = [{ start: begin }, noted, recorder, ...sinks, ...view.observers]
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
      handleSignals: false, // the command does
      onWarning: say,
    }
    for await (const report of train({ ...setup, onProgress: (progress) => view.progress(progress) })) {
      if (options.json) printJson(report)
      else view.report(report)
    }
    const { store } = model.policy
    return await activity.during("writing the trained model", () =>
      run.saveModel({ store, files: model.tokenizer.files }),
    )
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
    const again = typedCommand(file, options.set, program)
    if (run.replaces) say(`Nothing was saved; the run that was in ${config.run} before is there again.`)
    else if (run.saved) {
      say(`The state after iteration ${run.iteration} is saved. To go on: ${goOn}`)
      if (diverged(error))
        say(`To go on from there with a lower learning rate: ${await lowerRate(config, settled.optimizer)}`)
    } else if (signal.aborted) say(`Nothing was saved yet. To begin again: ${goOn}`)
    else say(`Nothing was saved yet. Once that is fixed, to begin again: ${again}`)
    throw error
  }
}

function beginning(run: Run): string {
  if (!run.resumed) return "Forked"
  return run.saved ? "Resuming" : "Nothing was saved since the fork; beginning again"
}

/** The command as it was typed, to begin again with what has been fixed in its file: a run that has saved nothing may change. */
function typedCommand(file: string, sets: readonly string[], program: readonly string[] | undefined): string {
  const words = [file, ...sets.flatMap((one) => ["--set", one]), "--resume"]
  return program ? commandLine("gateway", ...words, "--", ...program) : commandLine("train", ...words)
}

function diverged(error: unknown): boolean {
  return GigpoError.is(error) && error.code === "NON_FINITE"
}

/** A fork, since a run continues with the rate that it began with. */
async function lowerRate(config: Config, { learningRate }: { readonly learningRate: unknown }): Promise<string> {
  let run = `${config.run}-lower`
  for (let next = 2; await isThere(run); next++) run = `${config.run}-lower-${next}`
  const rate = typeof learningRate === "number" ? String(learningRate / 10) : "1e-6"
  const sets = [`run=${run}`, `training.optimizer.learningRate=${rate}`].flatMap((one) => ["--set", one])
  return nextCommand("train", config, ...sets, "--fork", config.run)
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
