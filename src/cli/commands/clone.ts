import { readdir } from "node:fs/promises"
import { resolve } from "node:path"
import type { Command } from "commander"
import { GigpoError } from "../../errors.ts"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { clone } from "../../training/clone.ts"
import { rateRules, settleRate } from "../../training/learning-rate.ts"
import { type ConfigArguments, configCommand } from "../arguments.ts"
import { loadConfig } from "../config/resolve.ts"
import { openConfiguredEnvironment, openModel } from "../model.ts"
import { chosenRate } from "../terminal/chosen-rate.ts"
import { formatBar, formatDuration, formatNumber } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface CloneArguments extends ConfigArguments {
  readonly out: string
  readonly overwrite?: boolean
}

export function cloneCommand(): Command {
  return configCommand("clone", "teach a model to imitate the environment's expert")
    .description(
      "Fits the configured model to what the environment's expert does (behaviour cloning), so that reinforcement learning " +
        "starts from something sensible. Writes a model folder once all epochs are done.",
    )
    .requiredOption("-o, --out <directory>", "where the model goes; the configured model's own folder is replaced")
    .option("--overwrite", "replace another model folder that is there")
    .action(runClone)
}

async function runClone(file: string, options: CloneArguments): Promise<void> {
  const config = await loadConfig(file, options.set)
  const environment = await openConfiguredEnvironment(config)
  const inPlace = resolve(options.out) === resolve(config.model)
  if (!inPlace) await checkOut(options.out, options.overwrite ?? false)
  await using model = await openModel(config)
  const screen = new Screen(process.stdout)
  if (config.clone.optimizer.learningRate === undefined) {
    const settled = settleRate(config.clone.optimizer, rateRules.cloning, model.policy)
    screen.print(chosenRate("clone.optimizer.learningRate", settled, model.policy))
  }
  await interruptible(async (signal) => {
    const setup = { ...model, environment, ...config.clone, seed: config.seed, signal }
    const epochs = clone({
      ...setup,
      onProgress: ({ done, total }) => screen.show([`${formatBar(done, total, 20)}  step ${done}/${total}`]),
    })
    for await (const { epoch, epochs: count, loss, rows, seconds } of epochs) {
      const columns = [`epoch ${epoch}/${count}`, `loss ${formatNumber(loss)}`, `${rows} rows`, formatDuration(seconds)]
      screen.print(columns.join("  "))
    }
    screen.clear()
    const save = (folder: string) => model.policy.save(folder, { files: model.tokenizer.files })
    await writeDirectory(options.out, save, { overwrite: true })
  })
  screen.print(`The model is in ${options.out}.`)
}

/** Refuses a folder that would be lost: anything but a model folder, and that one too unless it may be replaced. */
async function checkOut(out: string, overwrite: boolean): Promise<void> {
  const entries = await readdir(out).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return []
    throw new GigpoError("BAD_ARGUMENT", `--out ${out} is not a folder that can be read; choose another.`, {
      cause: error,
    })
  })
  if (entries.length === 0) return
  const isModel = entries.includes("config.json") && entries.some((name) => name.endsWith(".safetensors"))
  if (!isModel)
    throw new GigpoError("BAD_ARGUMENT", `${out} is there and is no model folder; choose another for --out.`)
  if (!overwrite)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There is a model in ${out}; add --overwrite to replace it, or choose another.`,
    )
}
