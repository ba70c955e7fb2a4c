import { resolve } from "node:path"
import { replaceFile } from "../../files/atomic-file.ts"
import { checkPath } from "../../options/arguments.ts"
import { parquetColumns, type Row } from "./parquet-columns.ts"
import { readEpisodes } from "./read.ts"

/** Characters and numbers of the rows that are written together: what is held. */
const rowGroupSize = 4 * 1024 * 1024

/**
 * Writes the recorded steps of a run as a Parquet table, in place of what is at `path`: a row a step, columns by the names of
 * `RecordedStep`, with `iteration`, `group`, `task` (JSON), `member`, `outcome`, `return`, `success` and `step` of where it stands. What
 * is one a token is a list; advantages of single tokens are `tokenAdvantages`. Compressed by Snappy.
 *
 * @throws as `readEpisodes`; `IO`
 */
export async function episodesToParquet(run: string, path: string): Promise<void> {
  checkPath("The file of the episodes", path)
  // Loaded when it is needed: all else would start later.
  const { ByteWriter, ParquetWriter } = await import("hyparquet-writer")
  await replaceFile(resolve(path), async (file) => {
    const bytes = new ByteWriter()
    const flush = async () => {
      await file.writeFile(bytes.getBytes())
      bytes.index = 0 // what is written next; its offset in the file goes on
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
        size += step.prompt.length + step.observation.length + step.anchor.length + 8 * step.reply.length
      }
    }
    if (size < rowGroupSize) continue
    yield rows
    ;[rows, size] = [[], 0]
  }
  if (rows.length > 0) yield rows
}
