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
    .argument("<config>", "configuration file, YAML or JSON; `gigpo config` lists its keys")
    .addOption(setOption())
}

export function setOption(): Option {
  return new Option("-s, --set <key=value>", "set a key over the file, e.g. training.iterations=20; may be repeated")
    .argParser((value: string, before: readonly string[]) => [...before, value])
    .default([], "none")
}

/** A command to be typed. */
export function commandLine(...words: readonly string[]): string {
  return words.map((word) => (/^[\w./:=,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ")
}
