import { stat } from "node:fs/promises"
import type { TrainingData } from "../data/data.ts"
import { transcripts } from "../data/transcripts.ts"
import { io } from "../files/io-error.ts"
import { recordedEpisodes } from "../view/record/as-data.ts"

/** Opens training data: a folder holds recorded episodes, a file holds transcripts. */
export async function openData(path: string): Promise<TrainingData> {
  return (await io("read", path, stat(path))).isDirectory() ? recordedEpisodes(path) : transcripts(path)
}
