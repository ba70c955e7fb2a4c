import { crc32 } from "node:zlib"
import type { RecordedGroup } from "../../src/view/data/recorded.ts"
import type { RecordedIteration } from "../../src/view/record/file.ts"
import type { EpisodeReader } from "../../src/view/serve/episode-reader.ts"
import { columnsOf } from "./made-run.ts"

/** What is recorded of every run, as its files would be read. */
export function madeReader(recorded: () => readonly RecordedGroup[]): EpisodeReader {
  const iterations = () => [...new Set(recorded().map(({ iteration }) => iteration))].sort((a, b) => a - b)
  return {
    recordedIterations: async () => iterations(),
    async readRecordedIterations(_, { from = 1 } = {}) {
      return iterations()
        .filter((one) => one >= from)
        .map((iteration) => {
          const groups = recorded().filter((group) => group.iteration === iteration)
          const { iteration: _, cursor: __, reset: ___, ...columns } = columnsOf(groups)
          const problems = columns.problems as NonNullable<RecordedIteration["problems"]> // of this version, so none is null
          return { ...columns, problems, iteration, checksum: crc32(JSON.stringify(groups)) }
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
