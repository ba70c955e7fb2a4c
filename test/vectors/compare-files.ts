// Holds estimators and losses to numbers that other projects' own functions gave.
//   npm run vectors -- <file.json> …
// Prints `compared N differ D` a topic and in all; exit code 1 on any difference or unknown topic, 2 where a file cannot be read.

import { visible } from "../../src/util/visible.ts"
import { compareFile } from "./run.ts"

const files = process.argv.slice(2)
if (files.length === 0) {
  console.error("usage: npm run vectors -- <file.json> …")
  process.exit(2)
}
try {
  let [compared, differ, failures] = [0, 0, 0]
  for (const file of files) {
    for (const report of await compareFile(file)) {
      console.log(`${report.topic}: compared ${report.compared} differ ${report.differ}`)
      for (const { where, expected, actual } of report.first)
        console.log(`  ${visible(where)}: expected ${expected}, got ${actual}`)
      for (const failure of report.failed) console.log(`  ${visible(failure)}`)
      compared += report.compared
      differ += report.differ
      failures += report.failed.length
    }
  }
  console.log(`in all: compared ${compared} differ ${differ}${failures > 0 ? `, not compared ${failures}` : ""}`)
  process.exitCode = differ > 0 || failures > 0 || compared === 0 ? 1 : 0
} catch (error) {
  console.error(visible((error as Error).message))
  process.exitCode = 2
}
