import { delimiter, dirname, sep } from "node:path"
import { Command, InvalidArgumentError, Option } from "commander"

/** Options of every command that reads a configuration file. */
export interface ConfigArguments {
  /** Settings over the file's: key=value each. */
  readonly set: readonly string[]
}

/** A command that takes a configuration file and `--set`. */
export function configCommand(name: string, summary: string): Command {
  return new Command(name)
    .summary(summary)
    .argument("<config>", `configuration file, YAML or JSON; "${commandLine("config")}" lists its keys`)
    .addOption(setOption())
}

export function setOption(help = "set a key over the file, e.g. training.iterations=20; may be repeated"): Option {
  return new Option("-s, --set <key=value>", help)
    .argParser((value: string, before: readonly string[]) => [...before, value])
    .default([], "none")
}

/** Where runs are looked for unless it is said: where `gigpo init` has them begin. */
export const usualRuns = "runs"

/** The argument that stands for a program that plays as an agent. */
export const programArgument = [
  "[command...]",
  "the agent: a program and its arguments, behind --; else the configuration's",
] as const

/** The settings that put a program in the place of the agent; none where none was named. */
export function programSets(command: readonly string[]): string[] {
  return command.length === 0 ? [] : ["agent.name=process", `agent.command=${JSON.stringify(command)}`]
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
