import { afterEach, expect, it, vi } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { readModelConfig } from "../../src/model-files/model-config.ts"
import { modelPath } from "./fixtures.ts"

afterEach(() => void vi.restoreAllMocks())

it("warns once about more positions than the model was made for", async () => {
  const { maxPositions } = await readModelConfig(modelPath("qwen2"))
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {})
  for (const more of [0, 8, 8]) {
    await using _ = await NativePolicy.open(modelPath("qwen2"), { maxPositions: maxPositions + more, threads: 1 })
  }
  expect(warned.mock.calls.map(([text]) => text)).toEqual([
    expect.stringContaining(
      `maxPositions is ${maxPositions + 8}, but the model was made for ${maxPositions} positions`,
    ),
  ])
})
