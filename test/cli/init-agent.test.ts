import { execFile } from "node:child_process"
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { installed } from "../clients/load.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

const root = join(import.meta.dirname, "../..")

describe.skipIf(!built)("gigpo init --agent (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = (...words: readonly string[]) => gigpo(words, { cwd: folder })
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-agent-"))
    const sets = ["--set", "initialModel.maxPositions=512"]
    expect(await run("init", "sokoban", "made", ...tiny, ...sets)).toMatchObject({ code: 0 })
    const written = await run("init", "--agent", "mine", "--model", "made/model", "--set", "training.iterations=2")
    expect(written).toMatchObject({ code: 0, stderr: "" })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it("writes an agent, its tasks, its package and a configuration, and rejects what is in the way", async () => {
    expect((await readdir(join(folder, "mine"))).sort()).toEqual([
      ...["agent.ts", "config.schema.json", "config.yaml", "package.json", "tasks.ts", "tsconfig.json"],
    ])
    const { dependencies } = JSON.parse(await readFile(join(folder, "mine/package.json"), "utf8"))
    expect(dependencies).toMatchObject({ gigpo: expect.stringMatching(/^file:/), openai: expect.stringMatching(/^\d/) })
    expect(await run("init", "--agent", "mine")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("not empty"),
    })
    expect(await run("init", "--agent")).toMatchObject({ code: 2, stderr: expect.stringContaining("'directory'") })
    expect(await run("init", "--agent", "a", "b")).toMatchObject({ code: 2 })
  })

  // The clients of the examples stand for those that `npm install` puts there: npm ci --prefix examples/agents.
  it.skipIf(!installed)("keeps the types, and trains for two iterations", async () => {
    const modules = join(folder, "mine/node_modules")
    await mkdir(join(modules, "@types"), { recursive: true })
    await symlink(root, join(modules, "gigpo"))
    await symlink(join(root, "examples/agents/node_modules/openai"), join(modules, "openai"))
    await symlink(join(root, "node_modules/@types/node"), join(modules, "@types/node"))
    const compiler = join(root, "node_modules/typescript/bin/tsc")
    await promisify(execFile)(process.execPath, [compiler, "-p", join(folder, "mine")])
    const sets = ["groups=2", "groupSize=2", "evaluation.tasks=2"].flatMap((set) => ["--set", `training.${set}`])
    const trained = await run("train", "mine/config.yaml", "--set", "threads=1", ...sets)
    expect(trained).toMatchObject({ code: 0 })
    expect(trained.stdout).toMatch(/iteration 2\/2 .* valid 1 /)
  })
})
