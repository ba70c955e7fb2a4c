import { delimiter, dirname, sep } from "node:path"
import { type Command, InvalidArgumentError, Option } from "commander"
import type { Setting } from "./config/document.ts"
import { findPreset } from "./presets.ts"

/** Options of every command that reads a configuration file. */
export interface ConfigArguments extends TrustArgument {
  /** Values that replace settings of the file: `key=value` each. */
  readonly set: readonly string[]
  /** Preset whose file is the configuration. */
  readonly preset?: string
}

export interface TrustArgument {
  /** Whether to trust the configuration of a run that was not made here. */
  readonly trust?: boolean
}

/** Adds the argument of a configuration file, `--preset` in its place, `--set` and `--trust` to a command. */
export function configCommand(command: Command): Command {
  return configArgument(command, `configuration file, YAML or JSON; "${commandLine("config")}" lists the keys`)
    .addOption(setOption())
    .addOption(trustOption())
}

/** Adds the argument of a configuration and `--preset` in its place to a command. One of them must be given. */
export function configArgument(command: Command, help: string): Command {
  return command
    .argument("[config]", help)
    .addOption(presetOption())
    .hook("preAction", (_, running) => placeConfig(running))
}

/** Option that names a preset in place of a configuration file. */
export function presetOption(): Option {
  return new Option(
    "--preset <name>",
    `settings of the paper, of its code or of one of our benchmarks; "${commandLine("presets")}" lists them`,
  )
}

/**
 * Puts the file of `--preset` in the place of the first argument. Of a command that takes a program, all arguments belong to the program then.
 *
 * @throws CommanderError if there is neither a configuration nor a preset, or both.
 */
function placeConfig(command: Command): void {
  const { preset } = command.opts<{ readonly preset?: string }>()
  const [first, program] = command.processedArgs as [string | undefined, readonly string[] | undefined]
  if (preset === undefined) {
    if (first === undefined) command.error("error: missing required argument 'config', or --preset <name>")
    return
  }
  const takesProgram = command.registeredArguments.length > 1
  if (first !== undefined && !takesProgram)
    command.error(`error: --preset ${preset} takes the place of the configuration ${first}; give one of the two`)
  const rest = takesProgram ? [[first, program ?? []].flat().filter((word) => word !== undefined)] : []
  command.processedArgs = [findPreset(preset).file, ...rest]
}

export function trustOption(
  help = "allow a run copied from another machine to load modules, start programs and use your API keys",
): Option {
  return new Option("--trust", help)
}

export function setOption(help = "override a key of the file, e.g. training.iterations=20; repeatable"): Option {
  return new Option("-s, --set <key=value>", help)
    .argParser((value: string, before: readonly string[]) => [...before, value])
    .default([])
}

/** Optional argument of a command: a program that plays as an agent, after `--`. */
export const programArgument = [
  "[command...]",
  "agent program and its arguments, after --; default: the configured agent",
] as const

/** Settings that make a program the agent. Empty without a program. */
export function programSets(command: readonly string[]): Setting[] {
  const from = "the command after --"
  const set = (text: string): Setting => ({ text, from })
  return command.length === 0 ? [] : [set("agent.name=process"), set(`agent.command=${JSON.stringify(command)}`)]
}

/** Parses an option that may be repeated. */
export function list(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

/** Returns a parser of an integer option. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    if (/^\d{1,10}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`It must be an integer from ${least} to ${most}.`)
  }
}

/** Parses an option in seconds, at least 0. */
export function readSeconds(text: string): number {
  const seconds = Number(text)
  if (text.trim() !== "" && seconds >= 0 && Number.isFinite(seconds)) return seconds
  throw new InvalidArgumentError("It must be a number of seconds, at least 0.")
}

/** Command line of this program, as the user would type it. */
export function commandLine(...words: readonly string[]): string {
  const quoted = words.map((word) => (/^[\w./:=,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
  return [programName(process.env, process.argv[1]), ...quoted].join(" ")
}

/**
 * Name to start this program by: `npx gigpo` if npm started it or if it is installed in a project's `node_modules`
 * outside PATH, else `gigpo`.
 */
export function programName({ npm_command: npm, PATH = "" }: NodeJS.ProcessEnv, script = ""): string {
  const folder = dirname(script)
  const isOwn = folder.endsWith(["node_modules", ".bin"].join(sep)) && !PATH.split(delimiter).includes(folder)
  return npm !== undefined || isOwn ? "npx gigpo" : "gigpo"
}
