import type { RecordedGroup } from "../data/recorded.ts"
import type { RecordedIteration } from "../record/file.ts"
import { recordedIterations } from "../record/folder.ts"
import { type EpisodesRange, readEpisodes, readGroup, readRecordedIterations } from "../record/read.ts"

/** Reader of recorded episodes in run folders. */
export interface EpisodeReader {
  /** Recorded iterations in ascending order. */
  recordedIterations(run: string): Promise<readonly number[]>
  /** Summaries of the recorded iterations, in order. */
  readRecordedIterations(run: string, range?: EpisodesRange): Promise<readonly RecordedIteration[]>
  readEpisodes(run: string, range: EpisodesRange): AsyncIterable<RecordedGroup>
  /** Reads a group; undefined if it was not recorded. Prompts and completions are those of `members`; default: all. */
  readGroup(
    run: string,
    iteration: number,
    group: number,
    members?: ReadonlySet<number>,
  ): Promise<RecordedGroup | undefined>
}

export const recordedEpisodes: EpisodeReader = {
  recordedIterations,
  readRecordedIterations,
  readEpisodes,
  readGroup: (run, iteration, group, members) => readGroup(run, iteration, group, "training", members),
}

/** Reader of the recorded episodes of evaluations. */
export const recordedEvaluations: EpisodeReader = {
  recordedIterations: (run) => recordedIterations(run, "evaluation"),
  readRecordedIterations: (run, range) => readRecordedIterations(run, { ...range, phase: "evaluation" }),
  readEpisodes: (run, range) => readEpisodes(run, { ...range, phase: "evaluation" }),
  readGroup: (run, iteration, group, members) => readGroup(run, iteration, group, "evaluation", members),
}

export const noEpisodes: EpisodeReader = {
  recordedIterations: async () => [],
  readRecordedIterations: async () => [],
  async *readEpisodes() {},
  readGroup: async () => undefined,
}
