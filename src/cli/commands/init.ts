import { readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Command } from "commander"
import { GigpoError } from "../../errors.ts"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { initialize } from "../../training/initialize.ts"
import { type ConfigArguments, commandLine, setOption } from "../arguments.ts"
import { applySet } from "../config/document.ts"
import { resolveDocument } from "../config/resolve.ts"
import { openConfiguredEnvironment } from "../model.ts"
import { starterConfig, starterNames } from "../starter.ts"

export function initCommand(): Command {
  return new Command("init")
    .summary("make a small model and a configuration to start with")
    .description(
      "Writes <directory>/config.yaml and <directory>/model: a small model with random weights and a tokenizer of its own, " +
        "enough to learn the environment on a CPU. To train a pretrained model, point a configuration at its folder instead.",
    )
    .argument("<environment>", `one of: ${starterNames().join(", ")}`)
    .argument("<directory>", "new folder")
    .addOption(setOption())
    .action(runInit)
}

async function runInit(environmentName: string, directory: string, { set }: ConfigArguments): Promise<void> {
  const model = join(directory, "model")
  const parsed = starterConfig(environmentName, model, join(directory, "run"))
  for (const one of set) applySet(parsed, one)
  const config = resolveDocument(parsed)
  if (config.model !== model)
    throw new GigpoError("BAD_CONFIG", `gigpo init makes the model in ${model}; do not set another place for it.`)
  const environment = await openConfiguredEnvironment(config)
  if ((await readdir(directory).catch(() => [])).length > 0)
    throw new GigpoError("BAD_ARGUMENT", `${directory} is already there and not empty; choose another folder.`)
  let parameters = 0
  await writeDirectory(directory, async (temporary) => {
    await writeFile(join(temporary, "config.yaml"), String(parsed.document))
    const options = { ...config.initialize, seed: config.seed }
    parameters = (await initialize({ directory: join(temporary, "model"), environment, options })).parameters
  })
  const file = join(directory, "config.yaml")
  const steps = [
    [commandLine("clone", file, "--out", model), "learn the expert's moves"],
    [commandLine("train", file), "get better by playing"],
  ] as const
  process.stdout.write(
    `Wrote ${file} and a model of ${parameters.toLocaleString("en-US")} weights in ${model}. Next:\n` +
      steps.map(([command, purpose]) => `  ${command.padEnd(steps[0][0].length)}   # ${purpose}\n`).join(""),
  )
}
