import { basename } from "node:path"
import { type Command, Option } from "commander"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { checkWritable } from "../../files/check-space.ts"
import { madeFor } from "../../model-files/made-for.ts"
import { checkRunFolder } from "../../runs/folder.ts"
import { removeRun } from "../../runs/replaced.ts"
import { Run } from "../../runs/run.ts"
import { type SftReport, sft } from "../../sft/sft.ts"
import { resolveLearningRate, sftLearningRate } from "../../training/learning-rate.ts"
import type { StageProgress } from "../../training/progress.ts"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { type ConfigArguments, commandLine, configCommand } from "../arguments.ts"
import { complete, placeKeys } from "../config/kept.ts"
import { configuredExpert, configuredSft } from "../config/modules.ts"
import { loadConfig } from "../config/resolve.ts"
import { checkSftSize } from "../config/sizes.ts"
import { openData } from "../data.ts"
import { fetchWeights, keptModels, refuseCache, withLocalModels } from "../hub.ts"
import { openModel, precisionOf } from "../model.ts"
import { checkTargetGiven, isSftModel, sftTarget, type TargetArguments } from "../sft-target.ts"
import { chosenRate } from "../terminal/chosen-rate.ts"
import { formatBar, formatDuration, formatNumber } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"

interface CloneArguments extends ConfigArguments, TargetArguments {
  readonly data?: string
}

export function sftCommand(command: Command): Command {
  return configCommand(command)
    .description(
      "Fine-tunes the configured model on completions of an expert (behavior cloning) as a start for reinforcement learning. " +
        "The expert is the function `expert` of the environment or of the agent module. With --data the model is trained on a file of chat transcripts or, with " +
        "sft.loss.name=dpo, preference pairs (JSON Lines), or on recorded episodes. Writes a model folder after the last epoch; until then " +
        "checkpoints and a log " +
        "(metrics.jsonl) are in <folder>.sft. Ctrl-C stops after saving; a second Ctrl-C stops at once.",
    )
    .option("-d, --data <path>", "transcripts or pairs (.jsonl), or a folder of recorded episodes; sets sft.data")
    .option("-o, --out <folder>", "folder to write the model to; this or --in-place is required")
    .addOption(
      new Option(
        "-i, --in-place",
        "write the result over the configured model (only models created by gigpo)",
      ).conflicts("out"),
    )
    .addOption(new Option("--resume", "resume an interrupted fine-tuning").conflicts("overwrite"))
    .option("--overwrite", "replace an existing model (only models created by gigpo) and an interrupted fine-tuning")
    .action((file, options) => interruptible((signal) => runClone(file, options, signal), { saves: true }))
}

/** Settings that may change when a fine-tuning run is resumed. */
const changeable = [...placeKeys, "training", "initialModel", "sft.checkpointEvery", "sft.data"] // the content of the data is compared instead

async function runClone(file: string, options: CloneArguments, signal: AbortSignal): Promise<void> {
  checkTargetGiven(options)
  const { data: named } = options
  const from = { text: `sft.data=${JSON.stringify(named)}`, from: "--data" }
  const sets = named === undefined ? options.set : [...options.set, from]
  const given = await unlessAborted(signal, () =>
    loadConfig(file, sets, { ...options, writes: options.inPlace ? ["model"] : [] }),
  )
  checkSftSize(given)
  const config = { ...given, ...(await withLocalModels({ model: given.model }, { signal, weights: false })) }
  if (options.inPlace) refuseCache(given, config)
  const { data: path } = config.sft
  const data = path === undefined ? undefined : await openData(path)
  const taught = data ? undefined : await unlessAborted(signal, () => configuredExpert(config))
  const environment = taught?.environment
  const out = await sftTarget(config.model, options)
  const folder = `${out.replace(/[/\\]+$/, "")}.sft`
  await checkRunFolder(folder, options)
  await fetchWeights({ ...given, teacher: undefined }, config, signal)
  await using model = await openModel(config, signal, new Set(config.sft.implicitQ ? ["value"] : []))
  const { files } = model.tokenizer
  const { store } = model.policy
  const copied = files.map((path) => basename(path))
  await sftTarget(config.model, options, copied)
  // The last checkpoint still exists while the model is written.
  await checkWritable(out, store.bytes && store.bytes.checkpoint + store.bytes.model)
  const screen = new Screen(process.stdout)
  const say = (text: string) => screen.print(text)
  if (options.inPlace && (await isSftModel(out)))
    say(`${out} was fine-tuned before; training continues from its weights.`)
  const settled = resolveLearningRate(config.sft.optimizer, sftLearningRate(config.sft), model.policy)
  const { resume, overwrite } = options
  const kept = {
    ...config,
    ...keptModels(given, config),
    ...precisionOf(model.policy),
    sft: { ...config.sft, optimizer: settled },
  }
  await using run = await Run.open(folder, kept, {
    resume,
    overwrite,
    changeable,
    complete,
    onWarning: say,
  })
  if (run.iteration > 0) say(`Resuming after update ${run.iteration}.`)
  else if (config.sft.optimizer.learningRate === undefined)
    say(chosenRate("sft.optimizer.learningRate", settled, model.policy))

  const shown =
    (what: string) =>
    ({ done, total }: StageProgress) =>
      screen.show([`${formatBar(done, total, 20)}  ${what} ${done}/${total}`])
  const work = async (signal: AbortSignal) => {
    const cloning = { ...(await configuredSft(config)), optimizer: settled, data }
    const setup = { ...model, ...taught, run, ...cloning, signal, handleSignals: false, onWarning: say }
    const epochs = sft({
      ...setup,
      onExpert: shown("task of the expert"),
      onProgress: shown("update"),
    })
    for await (const report of epochs) say(describe(report))
    screen.clear()
    const before = await madeFor(config.model)
    const fill = async (temporary: string) => {
      await store.save(temporary, { files, signal })
      return { made: "sft", environment: environment?.name ?? before }
    }
    await writeDirectory(out, fill, { overwrite: true })
  }
  try {
    await containingStrays(environment?.name ?? "The data", signal, work, say)
  } catch (error) {
    screen.keep()
    if (run.begun) say(howToGoOn(file, options, run, error))
    throw error
  }
  await run.close()
  await removeRun(folder)
  say(`The model is in ${out}.`)
}

function describe({ epoch, epochs, loss, completions, seconds, metrics }: SftReport): string {
  const { "preference/accuracy": accuracy } = metrics
  const preferred = accuracy === undefined ? [] : [`preferred ${formatNumber(100 * accuracy)} %`]
  const words = [`epoch ${epoch}/${epochs}`, `loss ${formatNumber(loss)}`, ...preferred, `${completions} completions`]
  return [...words, formatDuration(seconds)].join("  ")
}

function howToGoOn(file: string, { data, out, set }: CloneArguments, run: Run, error: unknown): string {
  const target = out === undefined ? ["--in-place"] : ["--out", out]
  const sets = set.flatMap((one) => ["--set", one])
  const learned = data === undefined ? [] : ["--data", data]
  const goOn = commandLine("sft", file, ...learned, ...target, ...sets, "--resume")

  if (GigpoError.is(error) && error.code === "NON_FINITE") {
    const again = commandLine("sft", file, ...learned, ...target, ...sets, "--overwrite")
    return `Lower the learning rate (sft.optimizer.learningRate), then restart: ${again}`
  }
  if (run.replaces) return "Nothing was saved; the earlier fine-tuning was restored."
  return run.saved
    ? `The state after update ${run.iteration} is saved. To resume: ${goOn}`
    : `Nothing was saved yet. To restart: ${goOn}`
}
