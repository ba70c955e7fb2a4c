import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    // The engine uses every core it finds; running test files side by side would only make them fight.
    maxWorkers: 1,
  },
})
