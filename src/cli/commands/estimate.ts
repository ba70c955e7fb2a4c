import type { Command } from "commander"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { visible } from "../../util/visible.ts"
import { type ConfigArguments, configCommand } from "../arguments.ts"
import type { Config } from "../config/config.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { isFromCode, loadFile, readDocument } from "../config/resolve.ts"
import { missingData, withGeneratedTasks } from "../dry-run/data.ts"
import { parseCount, parseDevice, parseMemory, parsePercent } from "../estimate/arguments.ts"
import { cards, requireCard } from "../estimate/cards.ts"
import { assumedPeak, describeEstimate, estimateJson } from "../estimate/describe.ts"
import { estimateTraining, type Given } from "../estimate/estimate.ts"
import { withKnownModels } from "../hub.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"

interface EstimateArguments extends ConfigArguments, Given {
  readonly mfu: number
  readonly json?: boolean
}

/** Exit code if memory does not suffice. */
const tooLarge = 3

export function estimateCommand(command: Command): Command {
  return configCommand(command)
    .description(
      "Estimates the memory of training on a device (which need not be present), the operations and bytes of one iteration, " +
        "and the totals of the run with evaluations, checkpoints and SFT. For a GPU it gives lower bounds from the GPU's datasheet, and " +
        "times at an assumed share of its peak; on the CPU it measures the rates of this machine. Shared prompt prefixes " +
        "are counted once, as in training. Prefix sharing is measured with random actions if the environment lists actions; otherwise only the first " +
        "prompt counts as shared. Exit code 3 if there is not enough memory.",
    )
    .option("--device <name>", "device instead of the configured one, e.g. cpu, cuda or cuda:0,1", parseDevice)
    .option(
      "--gpu <name>",
      `GPU: ${cards.map(({ name }) => name).join(", ")}; default: the GPU of this machine`,
      requireCard,
    )
    .option(
      "--memory <size>",
      "memory of the device, e.g. 80GB or 24GiB; default: that of the GPU or of this machine",
      parseMemory,
    )
    .option("--prompt-tokens <count>", "mean length of a prompt; default: measured on a few episodes", parseCount)
    .option("--completion-tokens <count>", "mean length of a completion; default: measured likewise", parseCount)
    .option("--steps <count>", "mean steps of an episode; default: measured likewise", parseCount)
    .option(
      "--mfu <percent>",
      "assumed model FLOPs utilization (MFU), in percent of the GPU's peak",
      parsePercent,
      assumedPeak,
    )
    .option("--json", "print one JSON line")
    .action((file, options) =>
      interruptible((signal) => unlessAborted(signal, () => runEstimate(file, options, signal))),
    )
}

async function runEstimate(file: string, options: EstimateArguments, signal: AbortSignal): Promise<void> {
  const parsed = await readDocument(file, options.set)
  if (!parsed.document.has("model") && !isFromCode(parsed.document.toJS()))
    throw new GigpoError(
      "BAD_CONFIG",
      `${file}: model is missing. An estimate needs only the model's config.json: get it with ` +
        '"hf download <owner>/<name> config.json --local-dir <name>", and add --set model=<name>.',
    )
  const given = await withKnownModels(await loadFile(parsed, file, options), signal)
  await checkConfiguredLengths(given)
  const config = await withPlayableTasks(given)
  const estimate = await estimateTraining(config, parsed.document.has("sft"), options, signal)
  if (options.json) printJson(estimateJson(estimate, options.mfu))
  else for (const line of describeEstimate(estimate, options.mfu)) process.stdout.write(`${visible(line)}\n`)
  if (estimate.refusal !== undefined) process.exitCode = tooLarge
}

/** The configuration, with generated tasks if the data of its environment are not on this machine, which is said on standard error. */
async function withPlayableTasks(config: Config): Promise<Config> {
  const missing = await missingData(config)
  if (missing.length === 0) return config
  const text = `Lengths are those of generated tasks, without ${missing.map(({ what }) => what).join(" and ")}.`
  new Screen(process.stderr, { live: false }).print(text)
  return withGeneratedTasks(config)
}
