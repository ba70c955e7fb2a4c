import { resolve } from "node:path"
import { replaceFile } from "../../files/atomic-file.ts"
import { checkPath } from "../../options/arguments.ts"
import { parquetColumns, type Row } from "./parquet-columns.ts"
import { readEpisodes } from "./read.ts"

/** Size of a row group, in characters and numbers; bounds memory. */
const rowGroupSize = 4 * 1024 * 1024

/**
 * Writes the recorded steps of a run as a Parquet table, one row per step. Columns have the names of the steps of a `RecordedEpisode`, plus `iteration`,
 * `group`, `task` (JSON), `member`, `outcome`, `return`, `success` and `step`. Values per token are lists; advantages per token are in
 * `tokenAdvantages`. Compressed with Snappy. An existing file at `path` is replaced.
 *
 * @throws GigpoError as `readEpisodes`; `IO`
 */
export async function episodesToParquet(run: string, path: string): Promise<void> {
  checkPath("The file of the episodes", path)
  // Loaded on demand to keep startup fast.
  const { ByteWriter, ParquetWriter } = await import("hyparquet-writer")
  await replaceFile(resolve(path), async (file) => {
    const bytes = new ByteWriter()
    const flush = async () => {
      await file.writeFile(bytes.getBytes())
      bytes.index = 0 // start of the next write; the offset in the file continues
    }
    const schema = [
      { name: "root", num_children: parquetColumns.length },
      ...parquetColumns.flatMap((column) => column.schema),
    ]
    const parquet = new ParquetWriter({ writer: bytes, schema, codec: "SNAPPY", createdBy: "gigpo" })
    for await (const rows of rowGroups(run)) {
      const columnData = parquetColumns.map(({ name, value }) => ({ name, data: rows.map(value) }))
      parquet.write({ columnData, rowGroupSize: rows.length })
      await flush()
    }
    parquet.finish()
    await flush()
  })
}

async function* rowGroups(run: string): AsyncGenerator<Row[], void, undefined> {
  let [rows, size]: [Row[], number] = [[], 0]
  for await (const about of readEpisodes(run)) {
    for (const episode of about.episodes) {
      for (const [index, step] of episode.steps.entries()) {
        rows.push({ about, episode, index, step })
        size += step.prompt.length + step.observation.length + step.anchor.length + 8 * step.completion.length
      }
    }
    if (size < rowGroupSize) continue
    yield rows
    ;[rows, size] = [[], 0]
  }
  if (rows.length > 0) yield rows
}
