import { delimiter, dirname, sep } from "node:path"
import { type Command, InvalidArgumentError, Option } from "commander"
import type { Setting } from "./config/document.ts"

/** Options of every command that reads a configuration file. */
export interface ConfigArguments extends TrustArgument {
  /** Settings over the file's: key=value each. */
  readonly set: readonly string[]
}

export interface TrustArgument {
  /** Whether a run of another origin may have done what its configuration asks for. */
  readonly trust?: boolean
}

/** Adds the argument of a configuration file, `--set` and `--trust` to a command. */
export function configCommand(command: Command): Command {
  return command
    .argument("<config>", `configuration file, YAML or JSON; "${commandLine("config")}" lists its keys`)
    .addOption(setOption())
    .addOption(trustOption())
}

export function trustOption(
  help = "let the configuration of a run that was not made here load modules, start programs, and contact servers with your keys",
): Option {
  return new Option("--trust", help)
}

export function setOption(help = "set a key over the file, e.g. training.iterations=20; may be repeated"): Option {
  return new Option("-s, --set <key=value>", help)
    .argParser((value: string, before: readonly string[]) => [...before, value])
    .default([], "none")
}

/** The argument that stands for a program that plays as an agent. */
export const programArgument = [
  "[command...]",
  "the agent: a program and its arguments, behind --; else the configuration's",
] as const

/** The settings that put a program in the place of the agent; none where none was named. */
export function programSets(command: readonly string[]): Setting[] {
  const from = "the command behind --"
  const set = (text: string): Setting => ({ text, from })
  return command.length === 0 ? [] : [set("agent.name=process"), set(`agent.command=${JSON.stringify(command)}`)]
}

/** Reads an option that may be repeated. */
export function list(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

/** Reads an option that is a whole number. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    if (/^\d{1,10}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** Reads an option that is a time in seconds, from 0. */
export function readSeconds(text: string): number {
  const seconds = Number(text)
  if (text.trim() !== "" && seconds >= 0 && Number.isFinite(seconds)) return seconds
  throw new InvalidArgumentError("It must be a number of seconds from 0.")
}

/** A command of this program, to be typed where it was started. */
export function commandLine(...words: readonly string[]): string {
  const quoted = words.map((word) => (/^[\w./:=,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
  return [programName(process.env, process.argv[1]), ...quoted].join(" ")
}

/**
 * What this program is started by: npx where npm started it, which finds it in a project's own packages, or where it lies among
 * these and the shell does not look there.
 */
export function programName({ npm_command: npm, PATH = "" }: NodeJS.ProcessEnv, script = ""): string {
  const folder = dirname(script)
  const isOwn = folder.endsWith(["node_modules", ".bin"].join(sep)) && !PATH.split(delimiter).includes(folder)
  return npm !== undefined || isOwn ? "npx gigpo" : "gigpo"
}
