import { describe, expect, it } from "vitest"
import { native } from "../../src/native/native.ts"
import { notBuilt, runProgram } from "./run-program.ts"

// What native code is called with, and what the system denies it, may end a call but never the process: so each runs in one of its own.

describe.skipIf(notBuilt)(`native code${notBuilt}`, () => {
  it("gives a result or a GigpoError, whatever one thing is wrong with its arguments", async () => {
    const { code, signal, stdout, stderr } = await runProgram("native-arguments")
    expect({ code, signal, last: stderr.trim().split("\n").at(-1) }).toMatchObject({ code: 0, signal: null })
    const { count, result, GigpoError, wrong } = JSON.parse(stdout)
    expect(wrong).toEqual([])
    expect(result + GigpoError).toBe(count)
    expect(GigpoError).toBeGreaterThan(4000)
    expect(result).toBeGreaterThan(600) // what may be left out, and memory of any kind
  })

  it("calls everything there is", async () => {
    const { stderr } = await runProgram("native-arguments")
    const names = Object.keys(native()).filter((name) => name !== "matmulLibraryReport") // opens a device
    for (const name of names) expect(stderr).toMatch(new RegExp(`^(new )?${name}\\b`, "m"))
    const { Engine } = native()
    for (const name of Object.getOwnPropertyNames(Engine.prototype)) {
      const { get, set } = Object.getOwnPropertyDescriptor(Engine.prototype, name)!
      if (name !== "constructor" && (set || !get)) expect(stderr).toContain(name)
    }
  })

  it("checks copies that cannot change afterwards", async () => {
    const { code, stdout } = await runProgram("changing-arrays")
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      sample: "BAD_ARGUMENT",
      logits: "BAD_ARGUMENT",
      tokenLogProbs: "a result", // NaN for an invalid token
      policyLoss: "BAD_ARGUMENT",
    })
  })

  it.skipIf(process.platform !== "linux")("does without the memory and the threads that it does not get", async () => {
    const { code, stdout } = await runProgram("little-memory", [], [], { addressSpace: 2_000_000 })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ threads: "OUT_OF_MEMORY", large: "OUT_OF_MEMORY", works: "a result" })
  })
})
