import { readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { writeDirectory } from "../files/atomic-directory.ts"
import { GigpoError } from "../util/errors.ts"
import { visible } from "../util/visible.ts"
import { agentConfig, loadsTypeScript, writeAgent } from "./agent-starter.ts"
import { commandLine } from "./arguments.ts"
import { applySet, type ConfigDocument, type Setting } from "./config/document.ts"
import { loadDocument, resolveDocument } from "./config/resolve.ts"
import { configSchema, schemaFile } from "./config/schema.ts"
import { presetConfig } from "./starter.ts"

// `gigpo init` with a preset or an agent: files are copied, and no model is made.

interface Copied {
  readonly set: readonly Setting[]
  readonly model?: string
}

/** Writes the configuration of a preset to a new folder. */
export async function initPreset(preset: string, directory: string, options: Copied): Promise<void> {
  const parsed = changed(presetConfig(preset, directory), options)
  const { run } = await loadDocument(parsed, directory)
  await checkEmpty(directory)
  await writeDirectory(directory, (temporary) => writeConfig(temporary, parsed), { manifest: "none" })
  const file = join(directory, "config.yaml")
  const sft: readonly Step[] = parsed.document.has("sft")
    ? [
        [
          commandLine("sft", file, "--out", join(directory, "model")),
          `imitate the expert; then set model in ${file} to this folder`,
        ],
      ]
    : []
  const plan: Step = [commandLine("train", file, "--dry-run"), "what it needs, and how long it takes"]
  sayNext(`Wrote ${file} with the settings of ${preset}.`, [plan, ...sft, trainStep(file), viewStep(run)])
}

/** Writes an agent in TypeScript and its configuration to a new folder. */
export async function initAgent(directory: string, options: Copied): Promise<void> {
  const parsed = changed(await agentConfig(directory), options)
  const { run, model } = resolveDocument(parsed) // its modules are not there yet
  await checkEmpty(directory)
  const fill = async (temporary: string) => {
    await writeAgent(temporary, directory)
    await writeConfig(temporary, parsed)
  }
  await writeDirectory(directory, fill, { manifest: "none" })
  const file = join(directory, "config.yaml")
  sayNext(`Wrote ${file} for the model ${model}, and an agent in ${join(directory, "agent.ts")}.`, [
    [`npm install --prefix ${directory}`, "OpenAI's client, and TypeScript"],
    ...(loadsTypeScript
      ? []
      : [[`npm exec --prefix ${directory} -- tsc -p ${directory}`, "compile, after each change"] as const]),
    [commandLine("train", file, "--dry-run"), "what it needs, and how long it takes"],
    trainStep(file),
    viewStep(run),
  ])
}

function changed(parsed: ConfigDocument, { set, model }: Copied): ConfigDocument {
  if (model !== undefined) parsed.document.set("model", model)
  for (const one of set) applySet(parsed, one)
  return parsed
}

/** Rejects a folder with files in it. */
export async function checkEmpty(directory: string): Promise<void> {
  if ((await readdir(directory).catch(() => [])).length > 0)
    throw new GigpoError("BAD_ARGUMENT", `${directory} exists and is not empty; choose another folder.`)
}

/** Writes a configuration and its schema. */
export async function writeConfig(folder: string, { document }: ConfigDocument): Promise<void> {
  await writeFile(join(folder, "config.yaml"), String(document))
  await writeFile(join(folder, schemaFile), `${JSON.stringify(configSchema())}\n`)
}

type Step = readonly [command: string, purpose: string]

const trainStep = (file: string): Step => [commandLine("train", file), "improve by reinforcement learning"]
const viewStep = (run: string): Step => [commandLine("view", run), "watch it in the browser"]

/** Commands after `gigpo init` of an environment. */
export function nextSteps(file: string, directory: string, isPretrained: boolean): readonly Step[] {
  const rest = [trainStep(file), viewStep(directory)]
  return isPretrained
    ? [[commandLine("estimate", file), "how long it will take"], ...rest]
    : [[commandLine("sft", file, "--in-place"), "imitate the expert"], ...rest]
}

/** Prints what was written, and the next commands. */
export function sayNext(written: string, steps: readonly Step[]): void {
  const width = Math.max(...steps.map(([command]) => command.length))
  const lines = steps.map(([command, purpose]) => `  ${command.padEnd(width)}   # ${purpose}\n`)
  process.stdout.write(visible(`${written} Next:\n${lines.join("")}`))
}
