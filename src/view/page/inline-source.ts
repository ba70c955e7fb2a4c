import { groupNamed, type Inlined, inlinedName } from "../data/inlined.ts"
import { overviewOf } from "../data/overview.ts"
import { matchesIn } from "../data/search-group.ts"
import { type SentGroup, wholeGroup } from "../data/sent-group.ts"
import { type EpisodePage, type Found, noEpisodes, type ReportPage, type RunInfo, type Source } from "../data/source.ts"
import { unpacked } from "./unpacked.ts"

/** Source of the data in the page itself (a report); undefined if the page contains no data. */
export function inlineSource(): Source | undefined {
  const lines = document.getElementById("data")?.textContent?.trim().split("\n")
  if (!lines || lines[0] === "") return undefined
  const parts = new Map(lines.map((line) => line.split(" ", 2) as [name: string, packed: string]))
  const reports = (run: string) => unpack<ReportPage>(parts.get(inlinedName("reports", run))!)
  const group = async (run: string, iteration: number, group: number) => {
    const packed = parts.get(inlinedName("group", run, iteration, group))
    return packed === undefined ? undefined : wholeGroup(await unpack<SentGroup>(packed))
  }
  return {
    live: false,
    runs: () => unpack<readonly RunInfo[]>(parts.get("runs")!),
    async overview(run) {
      const { reports: all, run: info } = await reports(run)
      return overviewOf(all, info.settings)
    },
    reports,
    async episodes(run) {
      const packed = parts.get(inlinedName("episodes", run))
      return packed === undefined ? noEpisodes : await unpack<EpisodePage>(packed)
    },
    group,
    async search(run, text) {
      const matches: Found["matches"][number][] = []
      for (const place of [...parts.keys()].map(groupNamed))
        if (place?.run === run) matches.push(...matchesIn((await group(run, place.iteration, place.group))!, text))
      return { matches }
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
  return await unpacked(packed).json()
}
