import { isAbsolute, join, relative, resolve, sep } from "node:path"
import { type Command, Option } from "commander"
import { GigpoError } from "../../errors.ts"
import { needsOf } from "../../training/make.ts"
import { checkRunFolder, Run, type RunMode } from "../../training/run.ts"
import { changeableKeys, formatRunConfig, type RunConfig } from "../../training/run-config.ts"
import { settleRates } from "../../training/settle-rates.ts"
import { train } from "../../training/train.ts"
import { type ConfigArguments, commandLine, configCommand } from "../arguments.ts"
import type { Config } from "../config/config.ts"
import { configuredTraining, openConfiguredEnvironment } from "../config/modules.ts"
import { loadConfig, resolveConfig } from "../config/resolve.ts"
import { openModel } from "../model.ts"
import { chosenRate } from "../terminal/chosen-rate.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { survivingStrays } from "../terminal/strays.ts"
import { TrainingView } from "../terminal/training-view.ts"

interface TrainArguments extends ConfigArguments, RunMode {
  readonly json?: boolean
}

export function trainCommand(): Command {
  return configCommand("train", "train a model by reinforcement learning")
    .description(
      "Trains the configured model in the configured environment. Metrics (metrics.jsonl), checkpoints and at the end the " +
        "model go to the run folder. Ctrl-C stops after saving; a second Ctrl-C stops at once.",
    )
    .addOption(new Option("--resume", "go on from the run's last checkpoint").conflicts("overwrite"))
    .option("--overwrite", "replace the run that is there")
    .addOption(
      new Option("--fork <folder>", "begin a new run with the state of another: its folder, or a checkpoint").conflicts(
        "resume",
      ),
    )
    .option("--json", "print one JSON line an iteration instead of the display")
    .action(runTrain)
}

/** Settings that a resumed run may change: what ends and keeps it, and where and how fast it runs. */
const mayChange = [
  ...changeableKeys,
  // Where a module of one's own lies: what it is, its digest tells.
  ...["environment.use", "training.estimator.use", "training.loss.use"],
  ...["run", "device", "threads", "microBatchTokens", "longestRow", "cacheBytes", "recompute", "clone", "initialize"],
]

/** Keys that are younger than a run hold what they stand for where they are left out. */
function complete(old: RunConfig): object {
  return { ...resolveConfig(formatRunConfig(old), [], "the run's config.json"), precision: old.precision }
}

async function runTrain(file: string, options: TrainArguments): Promise<void> {
  const config = await loadConfig(file, options.set)
  const environment = await openConfiguredEnvironment(config)
  const training = await configuredTraining(config)
  // Refuse before a large model is read, but replace nothing before it has been.
  await checkRunFolder(config.run, options)
  if (options.overwrite) checkModelOutside(config)
  await using model = await openModel(config, needsOf(training))
  const screen = new Screen(process.stdout, options.json ? { live: false } : {})
  const say = (text: string) => (options.json ? new Screen(process.stderr, { live: false }) : screen).print(text)
  const { device, precision } = model.policy
  const settled = settleRates(config.training, model.policy)
  // Kept, so that the run goes on with the same rates in another version, and in the same precision on another device.
  const kept = { ...config, precision, training: settled }
  await using run = await Run.open(config.run, kept, { ...options, mayChange, complete, onWarning: say })
  if (device === "cuda") say(`On the GPU: ${model.policy.plan.text}.`)
  if (config.training.optimizer.learningRate === undefined)
    say(chosenRate("training.optimizer.learningRate", settled.optimizer, model.policy))
  const { iterations } = config.training
  if (run.iteration > 0)
    say(`${options.fork ? "Forked" : "Resuming"} after iteration ${run.iteration} of ${iterations}.`)

  const view = new TrainingView(screen, iterations, run.iteration)
  const work = async (signal: AbortSignal) => {
    const setup = { ...model, environment, run, ...training, signal, onWarning: say }
    for await (const report of train({ ...setup, onProgress: (progress) => view.progress(progress) })) {
      if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`)
      else view.report(report)
    }
    return await run.saveModel({ store: model.policy.store, files: model.tokenizer.files })
  }
  const again = options.fork === undefined ? ["--overwrite"] : ["--overwrite", "--fork", options.fork]
  try {
    const stopping = () => say("Stopping; the state is being saved. Ctrl-C again stops at once.")
    const path = await survivingStrays(() => interruptible(work, stopping), say)
    screen.keep()
    const saved = relative(process.cwd(), path)
    say(`The trained model is in ${saved}. To evaluate it: ${nextCommand("evaluate", config, "--model", saved)}`)
  } catch (error) {
    screen.keep()
    if (!run.begun) throw error
    say(
      run.saved
        ? `The state after iteration ${run.iteration} is saved. To go on: ${nextCommand("train", config, "--resume")}`
        : `Nothing was saved yet. To start again: ${nextCommand("train", config, ...again)}`,
    )
    throw error
  }
}

/** The run keeps its configuration, with the settings of this command line in it. */
function nextCommand(command: string, { run }: Config, ...flags: string[]): string {
  return commandLine("gigpo", command, join(run, "config.json"), ...flags)
}

/** Overwriting a run must not remove the model that it is to start from. */
function checkModelOutside({ model, run }: Config): void {
  const way = relative(resolve(run), resolve(model))
  if (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
    throw new GigpoError(
      "BAD_CONFIG",
      `The model ${model} lies in the run folder ${run}, which --overwrite would remove. Choose another folder for the run.`,
    )
}
