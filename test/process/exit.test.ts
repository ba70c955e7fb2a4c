import { describe, expect, it } from "vitest"
import { notBuilt, runProgram } from "./run-program.ts"

describe.skipIf(notBuilt)(`a process${notBuilt}`, () => {
  it("exits when the work is done, without dispose(), and not before", async () => {
    expect(await runProgram("end-by-itself")).toEqual({ code: 0, signal: null, stdout: "done\n", stderr: "" })
  })

  it.each(["sample", "train"])("may exit in the middle of native work: %s", async (work) => {
    const ended = await runProgram("exit-in-the-middle", [work, "exit"])
    expect(ended).toEqual({ code: 0, signal: null, stdout: "leaving\n", stderr: "" })
  })

  it.each(["sample", "train"])("reports an uncaught error during native work: %s", async (work) => {
    const { code, signal, stdout, stderr } = await runProgram("exit-in-the-middle", [work, "throw"])
    expect({ code, signal, stdout }).toEqual({ code: 1, signal: null, stdout: "leaving\n" })
    expect(stderr).toContain("thrown on purpose")
  })

  it.each(["sample", "train"])("survives the end of worker threads in the middle of native work: %s", async (work) => {
    const ended = await runProgram("end-worker", [work])
    const stdout = "terminate\nexit\nworker: thrown on purpose\nthrow\nsame\n"
    expect(ended).toEqual({ code: 0, signal: null, stdout, stderr: "" })
  })
})
