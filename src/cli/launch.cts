#!/usr/bin/env node
// The command `gigpo`. An older Node gets a sentence: main.ts and what it imports are loaded after Node's version has been looked at.
import("../check-node.cts").then(
  () => import("./main.ts"),
  (error: Error) => {
    console.error(`gigpo: ${error.message}`)
    process.exitCode = 1
  },
)

export {}
