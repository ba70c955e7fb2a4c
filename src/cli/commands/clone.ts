import { basename } from "node:path"
import { type Command, Option } from "commander"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { checkWritable } from "../../files/check-space.ts"
import { unlessAborted } from "../../linked-abort.ts"
import { type CloneReport, clone } from "../../training/clone.ts"
import { cloningRate, settleRate } from "../../training/learning-rate.ts"
import { removeRun } from "../../training/replaced-run.ts"
import { Run } from "../../training/run.ts"
import { checkRunFolder } from "../../training/run-folder.ts"
import { type ConfigArguments, commandLine, configCommand } from "../arguments.ts"
import { checkTargetGiven, cloneTarget, type TargetArguments, wasCloned } from "../clone-target.ts"
import { complete, placeKeys } from "../config/kept.ts"
import { configuredCloning } from "../config/modules.ts"
import { loadConfig } from "../config/resolve.ts"
import { openData } from "../data.ts"
import { openConfiguredEnvironment, openModel, precisionOf } from "../model.ts"
import { chosenRate } from "../terminal/chosen-rate.ts"
import { formatBar, formatDuration, formatNumber } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"

interface CloneArguments extends ConfigArguments, TargetArguments {
  readonly data?: string
}

export function cloneCommand(): Command {
  return configCommand("clone", "teach a model to imitate the environment's expert, or transcripts")
    .description(
      "Fits the configured model to what the environment's expert does (behaviour cloning), so that reinforcement learning " +
        "starts from something sensible. With --data it learns from what is brought: chat transcripts or, with " +
        "clone.loss.name=dpo, preference pairs, one JSON object a line, or the episodes that a run recorded. Writes a model folder once all epochs are done; until then checkpoints and a log " +
        "(metrics.jsonl) are in <folder>.cloning beside it. Ctrl-C stops after saving; a second Ctrl-C stops at once.",
    )
    .option("-d, --data <path>", "transcripts or pairs (.jsonl), or a folder of recorded episodes; sets clone.data")
    .option("-o, --out <folder>", "where the model goes; this or --in-place")
    .addOption(new Option("-i, --in-place", "replace the configured model, if gigpo made it").conflicts("out"))
    .addOption(new Option("--resume", "go on with the cloning that was stopped there").conflicts("overwrite"))
    .option("--overwrite", "replace the model that is there, if gigpo made it, and a cloning that was stopped there")
    .action((file, options) => interruptible((signal) => runClone(file, options, signal), { saves: true }))
}

/** Settings that may be others when a cloning goes on. */
const mayChange = [...placeKeys, "training", "initialize", "clone.checkpointEvery", "clone.data"] // what the data holds is looked at

async function runClone(file: string, options: CloneArguments, signal: AbortSignal): Promise<void> {
  checkTargetGiven(options)
  const sets = options.data === undefined ? options.set : [...options.set, `clone.data=${JSON.stringify(options.data)}`]
  const config = await unlessAborted(signal, () => loadConfig(file, sets))
  const { data: path } = config.clone
  const data = path === undefined ? undefined : await openData(path)
  const environment = data ? undefined : await unlessAborted(signal, () => openConfiguredEnvironment(config))
  const out = await cloneTarget(config.model, options)
  const folder = `${out.replace(/[/\\]+$/, "")}.cloning`
  await checkRunFolder(folder, options)
  await using model = await openModel(config, signal, new Set(config.clone.implicitQ ? ["value"] : []))
  const { files } = model.tokenizer
  const { store } = model.policy
  const copied = files.map((path) => basename(path))
  await cloneTarget(config.model, options, copied)
  // The last checkpoint is still there when the model is written.
  await checkWritable(out, store.bytes && store.bytes.checkpoint + store.bytes.model)
  const screen = new Screen(process.stdout)
  const say = (text: string) => screen.print(text)
  if (options.inPlace && (await wasCloned(out)))
    say(`${out} was cloned already; this begins with what it learned then.`)
  const settled = settleRate(config.clone.optimizer, cloningRate(config.clone), model.policy)
  const { resume, overwrite } = options
  const kept = { ...config, ...precisionOf(model.policy), clone: { ...config.clone, optimizer: settled } }
  await using run = await Run.open(folder, kept, { resume, overwrite, mayChange, complete, onWarning: say })
  if (run.iteration > 0) say(`Resuming after step ${run.iteration}.`)
  else if (config.clone.optimizer.learningRate === undefined)
    say(chosenRate("clone.optimizer.learningRate", settled, model.policy))

  const work = async (signal: AbortSignal) => {
    const cloning = { ...(await configuredCloning(config)), optimizer: settled, data }
    const setup = { ...model, environment, run, ...cloning, signal, onWarning: say }
    const epochs = clone({
      ...setup,
      onProgress: ({ done, total }) => screen.show([`${formatBar(done, total, 20)}  step ${done}/${total}`]),
    })
    for await (const report of epochs) say(describe(report))
    screen.clear()
    const fill = async (temporary: string) => {
      await store.save(temporary, { files, signal })
      return { made: "clone" }
    }
    await writeDirectory(out, fill, { overwrite: true })
  }
  try {
    await containingStrays(environment?.name ?? "The data", signal, work, say)
  } catch (error) {
    screen.keep()
    if (run.begun) say(howToGoOn(file, options, run))
    throw error
  }
  await run.close()
  await removeRun(folder)
  say(`The model is in ${out}.`)
}

function describe({ epoch, epochs, loss, rows, seconds, metrics }: CloneReport): string {
  const { "preference/accuracy": accuracy } = metrics
  const preferred = accuracy === undefined ? [] : [`preferred ${formatNumber(100 * accuracy)} %`]
  const words = [`epoch ${epoch}/${epochs}`, `loss ${formatNumber(loss)}`, ...preferred, `${rows} rows`]
  return [...words, formatDuration(seconds)].join("  ")
}

function howToGoOn(file: string, { data, out, set }: CloneArguments, run: Run): string {
  const target = out === undefined ? ["--in-place"] : ["--out", out]
  const sets = set.flatMap((one) => ["--set", one])
  const learned = data === undefined ? [] : ["--data", data]
  const goOn = commandLine("clone", file, ...learned, ...target, ...sets, "--resume")
  if (run.replaces) return "Nothing was saved; the cloning that was there before is there again."
  return run.saved
    ? `The state after step ${run.iteration} is saved. To go on: ${goOn}`
    : `Nothing was saved yet. To begin again: ${goOn}`
}
