import { readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { Command } from "commander"
import type { Environment } from "../../environment/environment.ts"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { initialize } from "../../sft/initialize.ts"
import type { Progress } from "../../training/progress.ts"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { visible } from "../../util/visible.ts"
import { type ConfigArguments, commandLine, setOption } from "../arguments.ts"
import { applySet } from "../config/document.ts"
import { loadDocument } from "../config/resolve.ts"
import { configSchema, schemaFile } from "../config/schema.ts"
import { openConfiguredEnvironment } from "../model.ts"
import { starterConfig, starterNames } from "../starter.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"

export function initCommand(command: Command): Command {
  return command
    .description(
      "Writes <directory>/config.yaml and <directory>/model: a small model with random weights and a new tokenizer, " +
        "enough to learn the environment on a CPU. To train a pretrained model, point a configuration at its folder instead.",
    )
    .argument("<environment>", `one of: ${starterNames().join(", ")}; or the path of a module (./mine.mjs)`)
    .argument("<directory>", "new folder")
    .addOption(setOption())
    .action((name, directory, options) =>
      interruptible((signal) => runInit(name, directory, options, signal), { saves: true }),
    )
}

const replyLimit = ["training", "rollout", "maxCompletionTokens"]

async function runInit(
  environmentName: string,
  directory: string,
  { set }: ConfigArguments,
  signal: AbortSignal,
): Promise<void> {
  const model = join(directory, "model")
  const parsed = starterConfig(environmentName, directory)
  for (const one of set) applySet(parsed, one)
  const config = await loadDocument(parsed, directory)
  if (config.model !== model)
    throw new GigpoError("BAD_CONFIG", `gigpo init writes the model to ${model}; do not set model.`)
  const environment = await unlessAborted(signal, () => openConfiguredEnvironment(config))
  if (!environment.expert) throw withoutExpert(environment)
  if ((await readdir(directory).catch(() => [])).length > 0)
    throw new GigpoError("BAD_ARGUMENT", `${directory} exists and is not empty; choose another folder.`)
  let parameters = 0
  let played: string | undefined
  const options = { ...config.initialize, seed: config.seed }
  const say = (text: string) => new Screen(process.stderr, { live: false }).print(text)
  const work = (signal: AbortSignal) => {
    const fill = async (temporary: string): Promise<void> => {
      const onExpert = ({ done, total }: Progress) => {
        played = `the expert of ${environment.name}, task ${done} of ${total}`
      }
      const setup = { directory: join(temporary, "model"), environment, options, signal, onExpert, onWarning: say }
      const made = await activity.during(
        () => played,
        () => initialize(setup),
      )
      parameters = made.parameters
      if (!parsed.document.hasIn(replyLimit)) parsed.document.setIn(replyLimit, 2 * made.longestReply)
      await writeFile(join(temporary, "config.yaml"), String(parsed.document))
      await writeFile(join(temporary, schemaFile), `${JSON.stringify(configSchema())}\n`)
    }
    return writeDirectory(directory, fill, { manifest: "none" })
  }
  await containingStrays(environment.name, signal, work, say)
  const file = join(directory, "config.yaml")
  const steps = [
    [commandLine("sft", file, "--in-place"), "imitate the expert"],
    [commandLine("train", file), "improve by reinforcement learning"],
    [commandLine("view", directory), "watch it in the browser"],
  ] as const
  process.stdout.write(
    visible(
      `Wrote ${file} and a model with ${parameters.toLocaleString("en-US")} weights in ${model}. Next:\n` +
        steps.map(([command, purpose]) => `  ${command.padEnd(steps[0][0].length)}   # ${purpose}\n`).join(""),
    ),
  )
}

function withoutExpert({ name }: Environment): GigpoError {
  return new GigpoError(
    "BAD_ARGUMENT",
    `${name} has no expert. The tokenizer and the first training of a small model need an expert's completions. Give the environment ` +
      "an expert (Environment.expert), or write a configuration with a pretrained model; `gigpo config` lists the keys.",
  )
}
