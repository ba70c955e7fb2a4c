import { Command } from "commander"
import { checkTarget } from "../../files/atomic-directory.ts"
import { shortDigest } from "../../panel/digest-text.ts"
import { exportGames } from "../../panel/export-games.ts"
import { openPanel } from "../../panel/panel.ts"
import { visible } from "../../util/visible.ts"
import { activity } from "../terminal/activity.ts"
import { formatBar } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface PanelExportArguments {
  readonly out: string
  readonly overwrite?: boolean
}

/** `gigpo panel export`. */
export function panelExport(): Command {
  return new Command("export")
    .summary("write a panel of generated households as games for ALFWorld's loader")
    .description(
      "Writes a panel of generated households as game files (game.tw-pddl with its traj_data.json) that ALFWorld's Python package loads, so " +
        "that other software can be evaluated on the same tasks. gigpo.json in the folder holds the panel's digests and the game of each task.",
    )
    .argument("<panel>", "name or file of a panel, e.g. households/unseen@1")
    .requiredOption("-o, --out <folder>", "new or empty folder to write")
    .option("--overwrite", "replace an earlier export")
    .action((panel, options) => interruptible((signal) => runExport(panel, options, signal), { saves: true }))
}

async function runExport(name: string, { out, overwrite }: PanelExportArguments, signal: AbortSignal): Promise<void> {
  await checkTarget(out, { overwrite }) // before the panel is opened, which takes long
  const screen = new Screen(process.stderr)
  const panel = await activity.during(`opening the panel ${name}`, () => openPanel(name, {}, { signal }))
  const onProgress = (done: number, total: number) =>
    screen.show([`${formatBar(done, total, 20)}  game ${done}/${total}`])
  const folder = await exportGames(panel, out, { overwrite, onProgress, signal })
  screen.clear()
  screen.print(`${panel.name}: ${panel.tasks.length} games, world ${shortDigest(panel.digests.world)}.`)
  process.stdout.write(`${visible(folder)}\n`)
}
