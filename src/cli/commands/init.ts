import { join } from "node:path"
import { type Command, Option } from "commander"
import type { Environment } from "../../environment/environment.ts"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { initializeModel } from "../../sft/initialize.ts"
import type { StageProgress } from "../../training/progress.ts"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { type ConfigArguments, presetOption, setOption } from "../arguments.ts"
import { applySet } from "../config/document.ts"
import { loadDocument } from "../config/resolve.ts"
import { checkEmpty, initAgent, initPreset, nextSteps, sayNext, writeConfig } from "../init-copies.ts"
import { openConfiguredEnvironment } from "../model.ts"
import { addFacts, completionLimit, pretrainedFacts, usePretrained } from "../pretrained.ts"
import { starterConfig, starterNames } from "../starter.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"
import { containingStrays } from "../terminal/strays.ts"

export function initCommand(command: Command): Command {
  return command
    .description(
      "Writes <directory>/config.yaml and <directory>/model: a small model with random weights and a new tokenizer, " +
        "enough to learn the environment on a CPU. With --model, the configuration trains an adapter of a pretrained model instead. With " +
        "--preset, it has the settings of that preset; with --agent, it trains the TypeScript agent that is written beside it.",
    )
    .argument("[template]", `one of ${starterNames().join(", ")}; or the path of a module (./mine.mjs)`)
    .argument("[directory]", "new folder; the only argument with --preset or --agent")
    .addOption(
      new Option(
        "--vision",
        `make a small vision-language model, which is trained on pictures of the environment: ${starterNames({ vision: true }).join(", ")}, or a ` +
          "module whose prompts contain images",
      ).conflicts(["preset", "agent"]),
    )
    .option("--model <model>", "pretrained model: folder, GGUF file, or name on the Hugging Face Hub (owner/name)")
    .addOption(presetOption().conflicts("agent"))
    .option("--agent", "write an agent on OpenAI's client in TypeScript, and a configuration that trains it")
    .addOption(setOption())
    .action((first, second, options) =>
      interruptible((signal) => start(command, [first, second], options, signal), { saves: true }),
    )
}

interface InitArguments extends ConfigArguments {
  readonly model?: string
  readonly vision?: boolean
  readonly agent?: boolean
}

/** Writes what the options ask for. Throws CommanderError for missing or additional arguments. */
async function start(
  command: Command,
  [first, second]: readonly (string | undefined)[],
  options: InitArguments,
  signal: AbortSignal,
): Promise<void> {
  const { preset, agent } = options
  const copies = preset !== undefined || agent
  if (first === undefined) command.error(`error: missing required argument '${copies ? "directory" : "environment"}'`)
  if (copies && second !== undefined)
    command.error(
      `error: with ${agent ? "--agent" : "--preset"} the only argument is the new folder: too many arguments`,
    )
  if (agent) return await initAgent(first, options)
  if (preset !== undefined) return await initPreset(preset, first, options)
  if (second === undefined) command.error("error: missing required argument 'directory'")
  return await runInit(first, second, options, signal)
}

async function runInit(
  environmentName: string,
  directory: string,
  { set, model: pretrained, vision = false }: InitArguments,
  signal: AbortSignal,
): Promise<void> {
  const own = join(directory, "model")
  if (vision && pretrained !== undefined)
    throw new GigpoError(
      "BAD_ARGUMENT",
      "--vision makes a new model, and --model names an existing one. For a pretrained vision-language model, leave --vision out and set " +
        "environment.observation=image.",
    )
  const parsed = starterConfig(environmentName, directory, { vision })
  if (pretrained !== undefined) usePretrained(parsed, pretrained)
  for (const one of set) applySet(parsed, one)
  const config = await loadDocument(parsed, directory)
  if (config.model !== (pretrained ?? own))
    throw new GigpoError(
      "BAD_CONFIG",
      pretrained === undefined
        ? `gigpo init writes the model to ${own}. To train another model, use --model.`
        : "Name the model with --model, not with --set.",
    )
  const environment = await unlessAborted(signal, () => openConfiguredEnvironment(config))
  if (!environment.expert && pretrained === undefined) throw withoutExpert(environment)
  await checkEmpty(directory)
  let played: string | undefined
  let made = ""
  const say = (text: string) => new Screen(process.stderr, { live: false }).print(text)
  const onExpert = ({ done, total }: StageProgress) => {
    played = `the expert of ${environment.name}, task ${done} of ${total}`
  }
  const work = (signal: AbortSignal) => {
    const watch = { signal, onExpert, onWarning: say }
    const fill = async (temporary: string): Promise<void> => {
      const writing = async () => {
        if (pretrained !== undefined) {
          addFacts(parsed, await pretrainedFacts(pretrained, environment, watch))
          return `for the model ${pretrained}`
        }
        const options = { ...config.initialModel, seed: config.seed }
        const directory = join(temporary, "model")
        const { parameters, longestCompletion } = await initializeModel({ directory, environment, options, ...watch })
        if (!parsed.document.hasIn(completionLimit)) parsed.document.setIn(completionLimit, 2 * longestCompletion)
        return `and a model with ${parameters.toLocaleString("en-US")} weights in ${own}`
      }
      made = await activity.during(() => played, writing)
      await writeConfig(temporary, parsed)
    }
    return writeDirectory(directory, fill, { manifest: "none" })
  }
  await containingStrays(environment.name, signal, work, say)
  const file = join(directory, "config.yaml")
  sayNext(`Wrote ${file} ${made}.`, nextSteps(file, directory, pretrained !== undefined))
}

function withoutExpert({ name }: Environment): GigpoError {
  return new GigpoError(
    "BAD_ARGUMENT",
    `${name} has no expert. The tokenizer and the first training of a small model need an expert's completions. Give the environment ` +
      "an expert (Environment.expert), or start from a pretrained model with --model.",
  )
}
