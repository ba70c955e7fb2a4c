import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { readModelConfig } from "../../src/model-files/model-config.ts"

it("a configuration of hundreds of thousands of keys is rejected by its size", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-large-config-"))
  const keys = Array.from({ length: 200_000 }, (_, i) => `"k${i}":1`)
  await writeFile(join(folder, "config.json"), `{${keys}}`)
  await expect(readModelConfig(folder)).rejects.toThrow(/config\.json.*has/)
  await rm(folder, { recursive: true })
})
