import { Command } from "commander"
import { openBenchmark } from "../../benchmark/benchmark.ts"
import { shortDigest } from "../../benchmark/digest-text.ts"
import { exportGames } from "../../benchmark/export-games.ts"
import { checkTarget } from "../../files/atomic-directory.ts"
import { visible } from "../../util/visible.ts"
import { activity } from "../terminal/activity.ts"
import { formatBar } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface BenchmarkExportArguments {
  readonly out: string
  readonly overwrite?: boolean
}

/** `gigpo benchmark export`. */
export function benchmarkExport(): Command {
  return new Command("export")
    .summary("write a benchmark of generated households as games for ALFWorld's loader")
    .description(
      "Writes a benchmark of generated households as game files (game.tw-pddl with its traj_data.json) that ALFWorld's Python package loads, so " +
        "that other software can be evaluated on the same tasks. gigpo.json in the folder holds the benchmark's digests and the game of each task.",
    )
    .argument("<benchmark>", "name or file of a benchmark, e.g. households/unseen@1")
    .requiredOption("-o, --out <folder>", "new or empty folder to write")
    .option("--overwrite", "replace an earlier export")
    .action((benchmark, options) => interruptible((signal) => runExport(benchmark, options, signal), { saves: true }))
}

async function runExport(
  name: string,
  { out, overwrite }: BenchmarkExportArguments,
  signal: AbortSignal,
): Promise<void> {
  await checkTarget(out, { overwrite }) // before the benchmark is opened, which takes long
  const screen = new Screen(process.stderr)
  const benchmark = await activity.during(`opening the benchmark ${name}`, () => openBenchmark(name, {}, { signal }))
  const onProgress = (done: number, total: number) =>
    screen.show([`${formatBar(done, total, 20)}  game ${done}/${total}`])
  const folder = await exportGames(benchmark, out, { overwrite, onProgress, signal })
  screen.clear()
  screen.print(
    `${benchmark.name}: ${benchmark.tasks.length} games, environment ${shortDigest(benchmark.digests.environment)}.`,
  )
  process.stdout.write(`${visible(folder)}\n`)
}
