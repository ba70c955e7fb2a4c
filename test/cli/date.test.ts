import { readFileSync } from "node:fs"
import { cp, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { edit } from "../tokenizer/scratch.ts"
import { built, gigpo, readRun, tiny } from "./gigpo.ts"

/** Begins each process at another moment. */
const clockAt = (progress: string) =>
  `--import data:text/javascript,${encodeURIComponent(
    `const D=Date,by=new D('${progress}')-D.now();globalThis.Date=class extends D{constructor(...a){super(...(a.length?a:[D.now()+by]))}static now(){return D.now()+by}}`,
  )}`

const places = {
  here: { TZ: "UTC", LC_ALL: "C", LANG: "C", NODE_OPTIONS: clockAt("2026-11-25T23:30:00Z") },
  elsewhere: {
    ...{ TZ: "Pacific/Kiritimati", LC_ALL: "tr_TR.UTF-8", LANG: "tr_TR.UTF-8" },
    NODE_OPTIONS: clockAt("2027-03-01T12:00:00Z"),
  },
}

describe.skipIf(!built)("the date in prompts of a run (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (words: readonly string[], env: Readonly<Record<string, string>> = places.here) => {
    const outcome = await gigpo(words, { cwd: folder, env })
    expect(outcome, outcome.stderr).toMatchObject({ code: 0 })
    return outcome
  }
  const train = async (name: string, env: Readonly<Record<string, string>>, ...more: readonly string[]) => {
    const words = ["train", "small/config.yaml", "--set", `run=${name}`, "--set", "training.evaluation.every=0"]
    await run([...words, "--set", "training.checkpointEvery=1", "--json", ...more], env)
    return await readRun(join(folder, name))
  }
  const iterations = (count: number) => ["--set", `training.iterations=${count}`]
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-date-"))
    await run(["init", "sokoban", "small", ...tiny])
    const config = readFileSync(join(folder, "small/config.yaml"), "utf8")
    const model = /^model: (.*)$/m.exec(config)![1]!
    edit(join(folder, model, "tokenizer_config.json"), (json) => {
      json.chat_template = `{{ strftime_now('%A %d %B %Y %H:%M') }}\n${json.chat_template}`
    })
    await rm(join(folder, model, "gigpo.json")) // changed on purpose
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("is independent of place and time of the start if it is configured", async () => {
    const dated = [...iterations(1), "--set", "chat.now=2026-11-25T10:00"]
    const one = await train("one", places.here, ...dated)
    expect(await train("two", places.elsewhere, ...dated)).toEqual(one)
    expect(await train("other", places.here, ...iterations(1))).not.toEqual(one)
  })

  it("is that of the start, also after a resume elsewhere and later", async () => {
    await train("three", places.here, ...iterations(1))
    await cp(join(folder, "three"), join(folder, "four"), { recursive: true })
    const there = await train("three", places.here, ...iterations(2), "--resume")
    expect(await train("four", places.elsewhere, ...iterations(2), "--resume")).toEqual(there)
    const { promptDate } = JSON.parse(await readFile(join(folder, "four/config.json"), "utf8"))
    expect(promptDate).toMatch(/^2026-11-25T23:3\d:\d\d$/)
  })
})
