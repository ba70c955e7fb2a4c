import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

// What computes on one core runs side by side: TypeScript alone, and the command line, whose runs are small processes of their own.
// The engine uses every core it finds, so its test files take turns.
const apart = [
  "algorithms",
  "bench",
  "cli",
  "credit",
  "data",
  "environment",
  "files",
  "live",
  "loss",
  "model-files",
  "options",
  "panel",
  "replay",
  "retrieval",
  "rollout",
  "tinker",
  "tokenizer",
  "vectors",
  "view",
]
  .map((room) => `test/${room}/**/*.test.ts`)
  .concat(
    "test/training/{checkpoint,curriculum,episode-shares,expert-lengths,guards/{collapse,failures,non-finite},memory,metrics,rows,run,run-overwritten,run-resumed,schedule,seams,turns}.test.ts", // with an engine in TypeScript, or none
    "test/process/{exit,killed-*,memory}.test.ts", // in processes of their own
    "test/engine/{check-plan,memory-plan}.test.ts",
    "test/{kernels,package,readme}/*.test.ts",
    "test/{extending,layers,random}.test.ts",
  )
/** Some of them wait, for a server or a process. */
const workers = availableParallelism() + 1
/** They put something else in a module's place, which no other file may be given. */
const replacing = ["test/environment/search/search.test.ts", "test/files/atomic-directory.test.ts"]

export default defineConfig({
  // Examples import the package by its name, as users do.
  resolve: { alias: { gigpo: fileURLToPath(new URL("src/index.ts", import.meta.url)) } },
  test: {
    // So long only if it hangs, on a machine that is busy with something else too.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    isolate: false,
    projects: [
      {
        extends: true,
        test: {
          name: "apart",
          include: apart,
          exclude: replacing,
          maxWorkers: workers,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "replacing",
          include: replacing,
          isolate: true,
          maxWorkers: workers,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "engine",
          include: ["test/**/*.test.ts"],
          exclude: apart,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
