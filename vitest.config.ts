import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

export default defineConfig({
  // Examples import the package by its name, as users do.
  resolve: { alias: { gigpo: fileURLToPath(new URL("src/index.ts", import.meta.url)) } },
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    // The engine uses every core it finds; running test files side by side would only make them fight.
    maxWorkers: 1,
  },
})
