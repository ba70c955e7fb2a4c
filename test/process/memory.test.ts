import { describe, expect, it } from "vitest"
import { notBuilt, runProgram } from "./run-program.ts"

// Explicit garbage collection, a young generation that does not grow to tens of megabytes, and no optimizing compiler: glibc keeps 4 MB or so of the
// memory of its work, and when V8 optimizes what is a matter of time.
const nodeOptions = ["--expose-gc", "--max-semi-space-size=1", "--no-opt"]

// A leak of 1 kB a call, or of one of an engine's buffers, would show: programs/memory.mjs has the counts.
describe.skipIf(notBuilt)(`memory${notBuilt}`, () => {
  it.each([
    ["by ten thousand samples", "samples"],
    ["by hundreds of training steps", "training"],
    ["by thousands of calls that are aborted", "aborts"],
    ["by engines that come and go", "engines"],
    ["by engines that are not disposed", "forgotten"],
  ])("is not used up %s", async (_, kind) => {
    const { code, signal, stdout, stderr } = await runProgram("memory", [kind], nodeOptions)
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: "" })
    expect(Number(stdout)).toBeLessThan(8) // MB
  })
})
