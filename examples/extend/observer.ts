// An observer: what a run is doing, as a page that reloads itself.
import { writeFile } from "node:fs/promises"
import type { RunObserver } from "gigpo"

export function page(path: string): RunObserver {
  const rows: string[] = []
  let sample = ""
  return {
    name: "page",
    start({ iteration, iterations }) {
      rows.push(`<tr><th colspan=3>from ${iteration} to ${iterations}</th></tr>`)
    },
    episodes(_iteration, _groups, { advantages }, [step]) {
      // Advantages are in the order of the steps: failed and excluded episodes have none.
      sample = `${step?.record.observation.text} / ${step?.record.text} (advantage ${advantages[0]})`
    },
    async report({ iteration, metrics }) {
      const cells = [iteration, metrics["episode/return"], metrics["advantage/std"]]
      rows.push(`<tr>${cells.map((cell) => `<td>${cell?.toFixed(2)}</td>`).join("")}</tr>`)
      const text = sample.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
      await writeFile(path, `<meta http-equiv=refresh content=5><table>${rows.join("\n")}</table><pre>${text}</pre>`)
    },
    end({ error }) {
      rows.push(`<tr><th colspan=3>${error ? "stopped" : "done"}</th></tr>`)
    },
  }
}
