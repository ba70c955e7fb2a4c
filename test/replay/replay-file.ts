// Holds an environment to a recording of its original engine.
//   npm run replay -- <environment> <data folder> <recording.jsonl.gz>
// Prints the first differences and `steps N differences D`; exit code 1 on any difference, 2 where it cannot be replayed.

import { visible } from "../../src/util/visible.ts"
import { replay, replays } from "./run.ts"

const [name, data, recording] = process.argv.slice(2)
if (name === undefined || data === undefined || recording === undefined) {
  console.error(`usage: npm run replay -- <${Object.keys(replays).join("|")}> <data folder> <recording.jsonl.gz>`)
  process.exit(2)
}
try {
  const { steps, differences, first } = await replay(name, data, recording)
  // JSON shows line breaks and control characters of the texts as escapes.
  for (const { where, expected, actual } of first) {
    console.log(
      `${JSON.stringify(where)}\n  expected ${JSON.stringify(expected)}\n  actual   ${JSON.stringify(actual)}`,
    )
  }
  console.log(`steps ${steps} differences ${differences}`)
  process.exitCode = differences > 0 || steps === 0 ? 1 : 0
} catch (error) {
  console.error(visible((error as Error).message))
  process.exitCode = 2
}
