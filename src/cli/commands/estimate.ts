import type { Command } from "commander"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { visible } from "../../util/visible.ts"
import { type ConfigArguments, configCommand } from "../arguments.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { isFromCode, loadFile, readDocument } from "../config/resolve.ts"
import { parseCount, parseDevice, parseMemory, parsePercent } from "../estimate/arguments.ts"
import { cards, requireCard } from "../estimate/cards.ts"
import { describeEstimate, estimateJson } from "../estimate/describe.ts"
import { estimateTraining, type Given } from "../estimate/estimate.ts"
import { withLocalModels } from "../hub.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"

interface EstimateArguments extends ConfigArguments, Given {
  readonly peak: number
  readonly json?: boolean
}

/** Exit code where the model does not fit. */
const tooLarge = 3

export function estimateCommand(command: Command): Command {
  return configCommand(command)
    .description(
      "Counts the memory that training takes on a device, which need not be there, the operations and bytes of one iteration, " +
        "and what the whole run comes to, with its evaluations, its checkpoints and the cloning before it. For a GPU it gives floors, the times that the card's datasheet does not allow to go below, and what they " +
        "come to at an assumed share of its peak; on the CPU it measures this machine's rates. What prompts share is counted as " +
        "if it were computed each time. Exit code 3 when memory does not suffice.",
    )
    .option("--device <name>", "cpu or cuda instead of the configured one", parseDevice)
    .option(
      "--card <name>",
      `the GPU: ${cards.map(({ name }) => name).join(", ")}; default this machine's`,
      requireCard,
    )
    .option(
      "--memory <size>",
      "what the device has, e.g. 80GB or 24GiB; default the card's, or this machine's",
      parseMemory,
    )
    .option("--prompt-tokens <count>", "mean length of a prompt; default: measured on a few episodes", parseCount)
    .option("--reply-tokens <count>", "mean length of a reply, likewise", parseCount)
    .option("--steps <count>", "mean steps of an episode, likewise", parseCount)
    .option("--peak <percent>", "share of a GPU's peak that is assumed besides its floor", parsePercent, 40)
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
      `${file}: model is missing. An estimate needs the folder of the model's config.json alone: get it with ` +
        '"hf download <owner>/<name> config.json --local-dir <name>", and give it here by --set model=<name>.',
    )
  const config = await withLocalModels(await loadFile(parsed, file, options), { signal, weights: false })
  await checkConfiguredLengths(config)
  const estimate = await estimateTraining(config, parsed.document.has("sft"), options, signal)
  if (options.json) printJson(estimateJson(estimate, options.peak))
  else for (const line of describeEstimate(estimate, options.peak)) process.stdout.write(`${visible(line)}\n`)
  if (estimate.refusal !== undefined) process.exitCode = tooLarge
}
