import { delimiter, dirname, sep } from "node:path"
import { Command, Option } from "commander"

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

export function setOption(): Option {
  return new Option("-s, --set <key=value>", "set a key over the file, e.g. training.iterations=20; may be repeated")
    .argParser((value: string, before: readonly string[]) => [...before, value])
    .default([], "none")
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
