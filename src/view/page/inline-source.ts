import { groupNamed, type Inlined, inlinedName } from "../data/inlined.ts"
import type { EpisodePage, ReportPage, RunInfo, Source } from "../data/source.ts"

/** Source of the data in the page itself (a report); undefined if the page contains no data. */
export function inlineSource(): Source | undefined {
  const lines = document.getElementById("data")?.textContent?.trim().split("\n")
  if (!lines || lines[0] === "") return undefined
  const parts = new Map(lines.map((line) => line.split(" ", 2) as [name: string, packed: string]))
  return {
    live: false,
    runs: () => unpack<readonly RunInfo[]>(parts.get("runs")!),
    reports: (run) => unpack<ReportPage>(parts.get(inlinedName("reports", run))!),
    episodes: (run) => unpack<EpisodePage>(parts.get(inlinedName("episodes", run))!),
    async group(run, iteration, group) {
      const packed = parts.get(inlinedName("group", run, iteration, group))
      return packed === undefined ? undefined : await unpack(packed)
    },
    async kept() {
      const packed = parts.get("made")
      if (packed === undefined) return undefined
      const made = await unpack<NonNullable<Inlined["made"]>>(packed)
      return { ...made, groups: [...parts.keys()].flatMap((name) => groupNamed(name) ?? []) }
    },
  }
}

async function unpack<Value>(packed: string): Promise<Value> {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0))
  const unpacked = new Response(bytes).body!.pipeThrough(new DecompressionStream("gzip"))
  return await new Response(unpacked).json()
}
