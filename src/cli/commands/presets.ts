import type { Command } from "commander"
import { commandLine } from "../arguments.ts"
import { findPreset, presetNames } from "../presets.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { table } from "../terminal/table.ts"

export function presetsCommand(command: Command): Command {
  return command
    .description(
      "Lists the presets: configurations with the settings of the paper, of its code and of our benchmarks, each with its source. To see what a preset needs and how " +
        `long it takes: ${commandLine("train", "--preset", "NAME", "--dry-run")}.`,
    )
    .option("--json", "print the presets as one JSON line")
    .action((options) => interruptible(async () => listPresets(options)))
}

function listPresets({ json = false }: { readonly json?: boolean }): void {
  const presets = presetNames().map(findPreset)
  if (json) return void printJson(presets)
  const screen = new Screen(process.stdout, { live: false })
  for (const line of table(presets.map(({ name, summary }) => [name, summary]))) screen.print(line)
}
