import { existsSync } from "node:fs"
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

const sets = [
  "--set",
  "sft.epochs=6",
  "--set",
  "sft.completionsPerUpdate=8",
  "--set",
  "sft.optimizer.learningRate=1e-3",
]

describe.skipIf(!built)("gigpo sft (needs dist: npm run build:ts)", () => {
  let folder: string
  let whole: Buffer
  const run = async (words: readonly string[], stop?: { after: RegExp; signal: NodeJS.Signals }) => {
    let sent = false
    const onOutput = (stdout: string, kill: (signal: NodeJS.Signals) => void) => {
      if (sent || !stop?.after.test(stdout)) return
      sent = true
      kill(stop.signal)
    }
    return await gigpo(words, { cwd: folder, onOutput })
  }
  const sft = (model: string, ...words: string[]) => [
    "sft",
    "small/config.yaml",
    "-s",
    `model=${model}`,
    ...words,
    ...sets,
  ]
  const weights = (model: string) => readFile(join(folder, model, "model.safetensors"))
  const copy = async (name: string) => {
    await cp(join(folder, "small/model"), join(folder, name), { recursive: true })
    return name
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-clone-"))
    expect(await run(["init", "sokoban", "small", ...tiny])).toMatchObject({ code: 0 })
    expect(await run(sft("small/model", "--out", "whole"))).toMatchObject({ code: 0, stderr: "" })
    whole = await weights("whole")
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("writes only the model", async () => {
    expect((await weights("small/model")).equals(whole)).toBe(false)
    expect(await readdir(folder)).not.toContain("whole.sft")
  })

  it.each(["--out", "--in-place"])("with %s prints at Ctrl-C how to resume, with the same final model", async (way) => {
    const model = await copy(`stopped${way}`)
    const out = way === "--out" ? `out-of-${model}` : model
    const target = way === "--out" ? [way, out] : [way]
    const before = await weights(model)
    const stopped = await run(sft(model, ...target), { after: /^epoch 3\/6/m, signal: "SIGINT" })
    expect(stopped).toMatchObject({ code: 130, stderr: expect.stringContaining("[ABORTED]") })
    const [, step, words] = /The state after update (\d+) is saved. To resume: gigpo (.+)$/m.exec(stopped.stdout)!
    expect((await weights(model)).equals(before)).toBe(true)

    const again = await run(sft(model, ...target))
    expect(again).toMatchObject({ code: 2, stderr: expect.stringMatching(/--resume.*--overwrite.*\[RUN_EXISTS\]/) })
    const resumed = await run(words!.split(" ").map((word) => word.replaceAll("'", "")))
    expect(resumed).toMatchObject({ code: 0, stderr: "" })
    expect(resumed.stdout).toMatch(new RegExp(`^Resuming after update ${step}\\.\nepoch \\d+/6`))
    expect(resumed.stdout).not.toContain("epoch 2/6")
    expect((await weights(out)).equals(whole)).toBe(true)
    expect(await readdir(folder)).not.toContain(`${out}.sft`)
  })

  it("resumes from its last epoch after being killed, or restarts on request", async () => {
    for (const flag of ["--resume", "--overwrite"]) {
      const out = `killed${flag}`
      const killed = await run(sft("small/model", "--out", out), { after: /^epoch 4\/6/m, signal: "SIGKILL" })
      expect(killed.code).toBeNull()
      const resumed = await run(sft("small/model", "--out", out, flag))
      expect(resumed).toMatchObject({ code: 0, stderr: "" })
      expect(resumed.stdout.includes("epoch 1/6")).toBe(flag === "--overwrite")
      expect((await weights(out)).equals(whole)).toBe(true)
      expect(await readdir(folder)).not.toContain(`${out}.sft`)
    }
  })

  it("resumes only with the same settings, and keeps foreign files next to its checkpoints", async () => {
    const words = sft("small/model", "--out", "noted")
    await run(words, { after: /^epoch 2\/6/m, signal: "SIGINT" })
    expect(await run([...words, "--resume", "--set", "seed=5"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/seed was 0 and is now 5/),
    })
    await writeFile(join(folder, "noted.sft/notes.txt"), "mine")
    expect(await run([...words, "--resume", "--set", "threads=1"])).toMatchObject({ code: 0 })
    expect(await readdir(join(folder, "noted.sft"))).toEqual(["notes.txt"])
  })

  it("rejects an unwritable folder before the expert plays", async () => {
    await writeFile(join(folder, "file"), "mine")
    await symlink(join(folder, "small/model"), join(folder, "link"))
    await mkdir(join(folder, "empty"))
    const refusals: [string[], RegExp][] = [
      [["--out", "file"], /file already exists\. It is not a folder|file already exists/],
      [["--out", "file/model"], /is a file, not a folder|a part of the path is a file/],
      [["--out", "link", "--overwrite"], /is the configured model: give --in-place/],
      [["--out", "whole"], /whole already exists.*--overwrite/],
      [["--out", "empty", "--resume"], /There is no run in .*empty.sft to resume/],
    ]
    // Nobody can write there, root neither.
    if (existsSync("/sys/kernel"))
      refusals.push([["--out", "/sys/kernel/model"], /Could not write into \/sys\/kernel: .*\[IO\]/])
    for (const [words, message] of refusals) {
      const { code, stdout, stderr } = await run(sft("small/model", ...words))
      expect({ code, stdout }, stderr).toEqual({ code: stderr.includes("[IO]") ? 4 : 2, stdout: "" })
      expect(stderr).toMatch(message)
    }
    expect(await readdir(join(folder, "empty"))).toEqual([])
  })
})
