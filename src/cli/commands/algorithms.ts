import type { Command } from "commander"
import { type Algorithm, type AlgorithmPart, changes, statuses } from "../../algorithms/algorithm.ts"
import { bring } from "../../algorithms/bring.ts"
import { findAlgorithms } from "../../algorithms/find.ts"
import { settingsFor } from "../../algorithms/settings-for.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"
import { table } from "../terminal/table.ts"

const meanings = Object.entries(statuses).map(([status, meaning]) => `${status} (${meaning})`)

export function algorithmsCommand(command: Command): Command {
  return command
    .description(
      "Lists every built-in algorithm and every system that cites GiGPO. SELECTED BY is the argument of --set, or of train() in code. " +
        `STATUS is one of ${meanings.join(", ")}. With names, describes these algorithms with their equations.`,
    )
    .argument(
      "[names...]",
      `names (hgpo, StepPO), words of an equation or note (k3, GAE), or what the algorithm changes: ${Object.keys(changes).join(", ")}`,
    )
    .option("--json", "print the algorithms as one JSON line")
    .action((names, options) => interruptible(async () => listAlgorithms(names, options)))
}

function listAlgorithms(names: readonly string[], { json = false }: { readonly json?: boolean }): void {
  const found = findAlgorithms(names)
  if (json) return void printJson(found)
  const screen = new Screen(process.stdout, { live: false })
  const isNamed = names.some((name) => !Object.hasOwn(changes, name))
  for (const line of isNamed ? found.flatMap(described) : listed(found)) screen.print(line)
}

/** One table per change, with equal column widths in all tables. */
function listed(found: readonly Algorithm[]): string[] {
  const [head, ...rows] = table([["SYSTEM", "STATUS", "SOURCE", "SELECTED BY"], ...found.map(row)])
  return Object.entries(changes).flatMap(([change, title]) => {
    const own = rows.filter((_, at) => found[at]!.changes[0] === (change as AlgorithmPart))
    return own.length === 0 ? [] : [title, head!, ...own, ""]
  })
}

function row(algorithm: Algorithm): string[] {
  return [algorithm.system, algorithm.status, algorithm.source, settingsFor(algorithm).join(" ") || "–"]
}

function described(algorithm: Algorithm, at: number): string[] {
  const { system, equation, source, file, otherFiles = [], environments, brings, status, note } = algorithm
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["changes", algorithm.changes.join(", ")],
    ["equation", equation],
    ["selected by", settingsFor(algorithm).join(" ") || undefined],
    ["bring", brings && `${bring[brings].title}. ${bring[brings].text} Example: docs/algorithms.md`],
    ["environments", environments?.join(", ")],
    ["source", source],
    ["file", file && [file, ...otherFiles].join(", ")],
    ["status", `${status}: ${statuses[status]}`],
    ["note", note],
  ]
  const present = rows.flatMap(([name, value]) => (value === undefined ? [] : [[`  ${name}`, value]]))
  return [...(at > 0 ? [""] : []), system, ...table(present)]
}
