import type { Command } from "commander"
import { compareEvaluations } from "../../benchmark/compare.ts"
import { readEvaluation } from "../../benchmark/evaluation-file.ts"
import { GigpoError } from "../../util/errors.ts"
import { comparisonLines, type Named } from "../terminal/comparison.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { printJson } from "../terminal/print-json.ts"
import { Screen } from "../terminal/screen.ts"

export function compareCommand(command: Command): Command {
  return command
    .description(
      "Compares evaluations of one benchmark (gigpo evaluate --benchmark … --out) task by task. It compares the first " +
        "file with each of the others: both success rates, their paired difference with its 95 % interval and an exact test, the success rates " +
        "by kind of task, and the tasks solved by only one of the two.",
    )
    .argument("<evaluations...>", "two files or more")
    .option("--json", "print each comparison as one JSON line, with the keys of all tasks that only one solves")
    .action((files, options) => interruptible(() => runCompare(files, options)))
}

async function runCompare(files: readonly string[], { json = false }: { readonly json?: boolean }): Promise<void> {
  const [file, ...others] = files
  if (others.length === 0) {
    throw new GigpoError(
      "BAD_ARGUMENT",
      `Only one evaluation was given (${file}); give a second one of the same benchmark.`,
    )
  }
  const evaluations = await Promise.all(files.map((path) => readEvaluation(path)))
  // Compare all before the first is printed, so that an error leaves no partial output.
  const comparisons = evaluations.slice(1).map((other) => compareEvaluations(evaluations[0]!, other))
  const named = (index: number): Named => ({ file: files[index]!, model: evaluations[index]!.header.model?.name })
  const screen = new Screen(process.stdout, { live: false })
  for (const [index, comparison] of comparisons.entries()) {
    const [first, second] = [named(0), named(index + 1)]
    if (json) printJson({ first, second, ...comparison })
    else screen.print([...(index > 0 ? [""] : []), ...comparisonLines(comparison, first, second)].join("\n"))
  }
}
