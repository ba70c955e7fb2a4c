import { crc32 } from "node:zlib"
import { outcomes } from "../../src/rollout/episode.ts"
import type { RecordedGroup } from "../../src/view/data/recorded.ts"
import type { EpisodeReader } from "../../src/view/serve/episode-reader.ts"

/** What is recorded of every run, as its files would be read. */
export function madeReader(recorded: () => readonly RecordedGroup[]): EpisodeReader {
  const iterations = () => [...new Set(recorded().map(({ iteration }) => iteration))].sort((a, b) => a - b)
  return {
    recordedIterations: async () => iterations(),
    async readSummaries(_, { from = 1 } = {}) {
      return iterations()
        .filter((one) => one >= from)
        .map((iteration) => {
          const groups = recorded().filter((group) => group.iteration === iteration)
          const tasks = [...new Set(groups.map(({ task }) => JSON.stringify(task)))]
          const all = groups.flatMap((group) => group.episodes.map((episode) => ({ group, episode })))
          const column = (value: (episode: RecordedGroup["episodes"][number]) => number) =>
            all.map(({ episode }) => value(episode))
          return {
            ...{ iteration, checksum: crc32(JSON.stringify(groups)), tasks },
            group: all.map(({ group }) => group.group),
            task: all.map(({ group }) => tasks.indexOf(JSON.stringify(group.task))),
            member: column(({ member }) => member),
            outcome: column(({ outcome }) => outcomes.indexOf(outcome)),
            success: all.map(({ episode }) => episode.metrics.success ?? null),
            return: column((episode) => episode.return),
            steps: column(({ steps }) => steps.length),
            tokens: column(({ steps }) => steps.reduce((sum, { reply }) => sum + reply.length, 0)),
          }
        })
    },
    async *readEpisodes(_, { from = 1, to = Number.POSITIVE_INFINITY }) {
      yield* recorded().filter(({ iteration }) => iteration >= from && iteration <= to)
    },
    async readGroup(_, iteration, group) {
      return recorded().find((one) => one.iteration === iteration && one.group === group)
    },
  }
}
