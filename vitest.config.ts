import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

// What computes in this process alone runs side by side; the engine uses every core it finds, so its test files take turns.
const pure = [
  "credit",
  "environment",
  "files",
  "loss",
  "model-files",
  "options",
  "replay",
  "retrieval",
  "rollout",
  "tokenizer",
]
  .map((room) => `test/${room}/**/*.test.ts`)
  .concat("test/layers.test.ts", "test/random.test.ts")

export default defineConfig({
  // Examples import the package by its name, as users do.
  resolve: { alias: { gigpo: fileURLToPath(new URL("src/index.ts", import.meta.url)) } },
  test: {
    testTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: pure,
          maxWorkers: "100%",
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "engine",
          include: ["test/**/*.test.ts"],
          exclude: pure,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
