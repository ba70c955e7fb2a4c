import { dirname, join, relative } from "node:path"
import { type Command, InvalidArgumentError, Option } from "commander"
import { without } from "../../options/fixed.ts"
import { changeableKeys } from "../../runs/config.ts"
import { runFiles } from "../../runs/files.ts"
import { checkRunFolder, liesIn, type RunMode } from "../../runs/folder.ts"
import { readReports } from "../../runs/metrics-log.ts"
import type { IterationReport } from "../../runs/report.ts"
import { Run } from "../../runs/run.ts"
import type { Tokenizer } from "../../tokenizer/tokenizer.ts"
import { needsOf } from "../../training/make.ts"
import type { RunObserver } from "../../training/observers.ts"
import { resolveLearningRates } from "../../training/settle-rates.ts"
import { train } from "../../training/train.ts"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { recordEpisodes } from "../../view/record/recorder.ts"
import { sinkNames, sinksOf } from "../../view/sinks/sinks.ts"
import { type ConfigArguments, commandLine, configCommand, programArgument, programSets } from "../arguments.ts"
import type { Config } from "../config/config.ts"
import { complete, placeKeys } from "../config/kept.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { configuredObservers, configuredPlayer, configuredTraining } from "../config/modules.ts"
import { noteOwnRun } from "../config/own-run.ts"
import { loadFile, readDocument } from "../config/resolve.ts"
import { checkTrainingSize } from "../config/sizes.ts"
import { dryRun } from "../dry-run/dry-run.ts"
import { fetchWeights, keptModels, withLocalModels } from "../hub.ts"
import { openModel, precisionOf } from "../model.ts"
import { warnOfOther } from "../other-environment.ts"
import { openTeacher } from "../teacher.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"
import { TrainingView } from "../terminal/training-view.ts"
import {
  diverged,
  lowerRate,
  nextCommand,
  sayBeginning,
  sayBest,
  sayHowToContinue,
  typedCommand,
} from "../training-messages.ts"

interface TrainArguments extends ConfigArguments, RunMode {
  readonly json?: boolean
  readonly dryRun?: boolean
}

const whereItGoes =
  "Metrics (metrics.jsonl), checkpoints and the final model go to the run folder. Ctrl-C stops after saving; a second " +
  "Ctrl-C stops at once."

export function trainCommand(command: Command): Command {
  return trainingCommand(command)
    .description(`Trains the configured model in the configured environment. ${whereItGoes}`)
    .action((file, options) => interruptible((signal) => runTrain(file, options, signal), { saves: true }))
}

export function gatewayCommand(command: Command): Command {
  return trainingCommand(command)
    .description(
      `Trains an external agent program: gigpo gateway config.yaml -- node agent.mjs. Otherwise like "${commandLine("train")}". ` +
        "The program is started once per episode and calls the model as a client of OpenAI's API, at OPENAI_BASE_URL with OPENAI_API_KEY, or of " +
        "Anthropic's, at ANTHROPIC_BASE_URL with ANTHROPIC_API_KEY; GIGPO_MODEL is the name of the model, GIGPO_TEMPERATURE its temperature, GIGPO_TASK " +
        "the task as JSON. The last line of its output is the reward: a number or " +
        `{"reward": …, "success": …}. training.rollout.episodeTimeout limits the time of an episode, ` +
        `training.rollout.concurrency how many run at once. ${whereItGoes}`,
    )
    .argument(...programArgument)
    .action((file, program, options) =>
      interruptible((signal) => runTrain(file, options, signal, program), { saves: true }),
    )
}

function trainingCommand(command: Command): Command {
  return configCommand(command)
    .addOption(
      new Option("--resume [auto]", "resume from the last checkpoint of the run; auto: start the run if there is none")
        .conflicts("overwrite")
        .argParser(parseResume),
    )
    .option(
      "--overwrite",
      "replace an existing run, after the first save of the new one; files not written by gigpo stay",
    )
    .option("--fork <folder>", "start a new run from a checkpoint, or from the newest one of a run folder")
    .option("--json", "print one JSON line per iteration instead of the display")
    .option(
      "--dry-run",
      "check configuration, data, memory, time and engine, and print the plan; writes and downloads nothing",
    )
}

function parseResume(text: string): "auto" {
  if (text === "auto") return text
  throw new InvalidArgumentError("--resume takes auto or no value; put the configuration before it.")
}

/** Settings that may change when a run is resumed: stopping, storage, hardware and speed. */
const changeable = [...changeableKeys, ...sinkNames, ...placeKeys, "sft", "initialModel"]

/** Loaded configuration of a training, and whether it has settings of a fine-tuning before it. */
async function readTraining(
  file: string,
  options: TrainArguments,
  signal: AbortSignal,
  program?: readonly string[],
): Promise<{ readonly given: Config; readonly clones: boolean }> {
  const sets = [...options.set, ...programSets(program ?? [])]
  const parsed = await readDocument(file, sets)
  const given = await unlessAborted(signal, () => loadFile(parsed, file, { ...options, writes: ["run"] }))
  if (program && !given.agent)
    throw new GigpoError(
      "BAD_CONFIG",
      `No agent is configured. Give one: ${commandLine("gateway", file)} -- node agent.mjs, or set agent in ${file}.`,
    )
  checkTrainingSize(given)
  return { given, clones: parsed.document.has("sft") }
}

/** @param program - agent command after the `--` of gigpo gateway. */
async function runTrain(
  file: string,
  options: TrainArguments,
  signal: AbortSignal,
  program?: readonly string[],
): Promise<void> {
  const { given, clones } = await readTraining(file, options, signal, program)
  const mode: RunMode = without(options, "set", "json", "trust", "preset", "dryRun")
  if (options.dryRun) {
    const { preset, json = false } = options
    return await unlessAborted(signal, () => dryRun({ file, preset, config: given, clones, mode, json }, signal))
  }
  // Local folders for models of the Hub, whose weights are not downloaded yet.
  const config = await withLocalModels(given, { signal, weights: false })
  await checkConfiguredLengths(config)
  await using player = await unlessAborted(signal, () => configuredPlayer(config))
  const training = await configuredTraining(config)
  const sinks = [...sinksOf(config), ...(await configuredObservers(config))]
  // Fail before a large model is read, but replace nothing until the model is open.
  await checkRunFolder(config.run, mode)
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
  // Stored, so that resumption uses the same rates in another version and the same precision on another device.
  const kept = { ...config, ...keptModels(given, config), ...precisionOf(model.policy), training: settled }
  await using run = await Run.open(config.run, kept, { ...mode, changeable, complete, onWarning: say })

  const { iterations } = config.training
  // Printed only after all checks have passed.
  const start = () => sayBeginning(config, run, { policy: model.policy, optimizer }, say)
  const view = new TrainingView(screen, iterations, run.iteration, await reportsBefore(run))
  const work = async (signal: AbortSignal) => {
    const stopping = () => say("Stopping after saving the state. Ctrl-C again stops at once.")
    signal.addEventListener("abort", stopping, { once: true })
    const recorders = recordersOf(config, run, model.tokenizer, say)
    const observers = [{ start }, ...recorders, ...sinks, ...view.observers]
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
    await sayOutcome().catch(() => {}) // the first error is the one to report
    const lower = diverged(error) ? await lowerRate(config, optimizer) : undefined
    const restart = signal.aborted ? undefined : typedCommand(file, options.set, program)
    sayHowToContinue(config, run, { lower, restart }, say)
    throw error
  }
}

/** Observers that record the episodes, and that the run is one of this machine. */
function recordersOf(
  config: Config,
  run: Run,
  tokenizer: Tokenizer,
  onWarning: (message: string) => void,
): readonly RunObserver[] {
  const noted = {
    name: "the record of this run as your own",
    start: () => noteOwnRun(join(run.directory, runFiles.config)),
  }
  return [noted, recordEpisodes({ ...config.recording, tokenizer, onWarning })]
}

/** Earlier reports of a resumed run, or of the run that was forked. */
async function reportsBefore({ checkpoint }: Run): Promise<readonly IterationReport[]> {
  return checkpoint ? await readReports(join(dirname(dirname(checkpoint.directory)), runFiles.metrics)) : []
}

/** Rejects --overwrite if it would remove the model to train. */
async function checkModelOutside({ model, run }: Config): Promise<void> {
  if (!(await liesIn(model, run))) return
  throw new GigpoError(
    "BAD_CONFIG",
    `The model ${model} lies in the run folder ${run}, which --overwrite would remove. Choose another folder for the run.`,
  )
}
