import { resolve } from "node:path"
import { replaceFile } from "../../files/atomic-file.ts"
import { stringify } from "../../json/text.ts"
import { checkPath } from "../../options/arguments.ts"
import { readEpisodes } from "./read.ts"

/**
 * Writes the recorded episodes of a run as JSON Lines, one episode per line: `RecordedEpisode` with `iteration`, `group` and `task`.
 * An existing file at `path` is replaced.
 *
 * @throws GigpoError as `readEpisodes`; `IO`
 */
export async function episodesToJsonl(run: string, path: string): Promise<void> {
  checkPath("The file of the episodes", path)
  await replaceFile(resolve(path), async (file) => {
    for await (const { episodes, ...about } of readEpisodes(run))
      for (const episode of episodes) await file.writeFile(`${stringify({ ...about, ...episode })}\n`)
  })
}
