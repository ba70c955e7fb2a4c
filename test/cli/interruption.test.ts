import type { ChildProcess } from "node:child_process"
import { cp, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, type Outcome, readRun, tiny } from "./gigpo.ts"

describe.skipIf(!built)("a training that is stopped (needs dist: npm run build:ts)", () => {
  let folder: string
  let whole: { metrics: unknown[]; model: Buffer }
  const train = async (name: string, flags: string[] = [], signal?: { after: RegExp; names: NodeJS.Signals[] }) => {
    let sent = false
    const send = (stdout: string, kill: (signal: NodeJS.Signals) => void) => {
      if (sent || !signal?.after.test(stdout)) return
      sent = true
      for (const one of signal.names) kill(one)
    }
    const words = ["train", "small/config.yaml", "--set", `run=${name}`, ...flags]
    return await gigpo(words, { cwd: folder, onOutput: send })
  }

  const read = (name: string) => readRun(join(folder, name))

  async function expectSame(name: string, uninterrupted: { metrics: unknown[]; model: Buffer }): Promise<void> {
    const { metrics, model } = await read(name)
    expect(metrics).toEqual(uninterrupted.metrics)
    expect(model.equals(uninterrupted.model)).toBe(true)
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-stop-"))
    expect(await gigpo(["init", "sokoban", "small", ...tiny], { cwd: folder })).toMatchObject({ code: 0 })
    expect(await gigpo(["sft", "small/config.yaml", "--in-place"], { cwd: folder })).toMatchObject({
      code: 0,
    })
    expect(await train("whole")).toMatchObject({ code: 0 })
    whole = await read("whole")
    expect(whole.metrics).toHaveLength(7)
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  const resumed = async (name: string, stopped: Outcome) => {
    const iteration = Number(/The state after iteration (\d+) is saved/.exec(stopped.stdout)?.[1])
    const going = await train(name, ["--resume"])
    expect(going).toMatchObject({ code: 0, stderr: "" })
    expect(going.stdout).toContain(`Resuming after iteration ${iteration} of 6.`)
    return iteration
  }

  it.each([
    ["SIGINT", 130, "Ctrl-C"],
    ["SIGTERM", 143, "SIGTERM"],
    ["SIGHUP", 129, "SIGHUP"],
  ] as const)(
    "by %s within an iteration saves, says how to go on, and comes to what it would have come to",
    async (name, code, called) => {
      const stopped = await train(name, [], { after: /^iteration 3\/6/m, names: [name] })
      expect(stopped.code).toBe(code)
      expect(stopped.stderr).toBe(`gigpo: Stopped by ${called}. [ABORTED]\n`)
      expect(stopped.stdout).toMatch(/Stopping after saving the state/)
      expect(stopped.stdout).toMatch(new RegExp(`To resume: gigpo train ${name}/config.json --resume`))
      expect(await resumed(name, stopped)).toBeGreaterThanOrEqual(3)
      await expectSame(name, whole)
    },
  )

  it("because its terminal has gone is saved all the same, though nothing can be told", async () => {
    let child: ChildProcess | undefined
    const stopped = await gigpo(["train", "small/config.yaml", "--set", "run=gone"], {
      cwd: folder,
      onStart: (started) => {
        child = started
      },
      onOutput: (stdout, kill) => {
        if (!/^iteration 3\/6/m.test(stdout)) return
        child?.stdout?.destroy()
        child?.stderr?.destroy()
        kill("SIGHUP")
      },
    })
    expect(stopped.code).toBe(129)
    expect(await train("gone", ["--resume"])).toMatchObject({ code: 0, stderr: "" })
    await expectSame("gone", whole)
  })

  it("with a KL term still compares with the model that the run began with", async () => {
    const kl = ["--set", "training.loss.klWeight=0.5"]
    expect(await train("kl-whole", kl)).toMatchObject({ code: 0 })
    const stopped = await train("kl", kl, { after: /^iteration 3\/6/m, names: ["SIGINT"] })
    expect(stopped.code).toBe(130)
    expect(await train("kl", [...kl, "--resume"])).toMatchObject({ code: 0 })
    const uninterrupted = await read("kl-whole")
    expect(uninterrupted.model.equals(whole.model)).toBe(false)
    await expectSame("kl", uninterrupted)
  })

  it("with a KL term is not resumed once its model was cloned in place", async () => {
    await cp(join(folder, "small"), join(folder, "again"), { recursive: true })
    const kl = ["--set", "training.loss.klWeight=0.5", "--set", "model=again/model"]
    expect(await train("cloned-under", kl, { after: /^iteration 3\/6/m, names: ["SIGINT"] })).toMatchObject({
      code: 130,
    })
    const before = await readFile(join(folder, "cloned-under/config.json"), "utf8")
    expect(await gigpo(["sft", "small/config.yaml", "--in-place", ...kl], { cwd: folder })).toMatchObject({ code: 0 })
    expect(await train("cloned-under", [...kl, "--resume"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /again\/model, does not have the weights that the run in .*cloned-under started with/,
      ),
    })
    expect(await readFile(join(folder, "cloned-under/config.json"), "utf8")).toBe(before)
    await cp(join(folder, "small/model"), join(folder, "again/model"), { recursive: true })
    // The run's own file is a configuration, too.
    const words = ["train", "cloned-under/config.json", "--resume"]
    expect(await gigpo(words, { cwd: folder })).toMatchObject({ code: 0, stderr: "" })
    await expectSame("cloned-under", await read("kl-whole"))
  })

  it("again and again, after every iteration, comes to the same", async () => {
    let stopped = await train("often", [], { after: /^iteration 1\/6/m, names: ["SIGINT"] })
    for (let iteration = 2; iteration < 5; iteration++) {
      expect(stopped.code).toBe(130)
      stopped = await train("often", ["--resume"], { after: /^iteration \d\/6/m, names: ["SIGINT"] })
    }
    await resumed("often", stopped)
    await expectSame("often", whole)
  })

  it("before the first iteration is done begins again and comes to the same", async () => {
    const stopped = await train("early", [], { after: /^evaluation after 0/m, names: ["SIGINT"] })
    expect(stopped.code).toBe(130)
    expect(stopped.stdout).toContain("Nothing was saved yet. To restart: gigpo train early/config.json --resume")
    expect(await train("early", ["--resume"])).toMatchObject({ code: 0 })
    await expectSame("early", whole)
  })

  it("before the first iteration of a run that replaces another is done, brings that one back", async () => {
    const seed = ["--set", "seed=5"]
    expect(await train("old", ["--resume", "auto"])).toMatchObject({ code: 0 })
    const stopped = await train("old", ["--overwrite", ...seed], { after: /^evaluation after 0/m, names: ["SIGINT"] })
    expect(stopped.stdout).toContain("the earlier run in old was restored")
    await expectSame("old", whole)
    expect(await train("old", ["--resume", "auto", ...seed])).toMatchObject({ code: 2 })
  })

  it("by a second Ctrl-C at once ends at once and can still go on", async () => {
    const stopped = await train("twice", [], { after: /^iteration 3\/6/m, names: ["SIGINT", "SIGTERM"] })
    // Of two that are pending together the system may deliver either first; the second one ends it.
    expect([130, 143]).toContain(stopped.code)
    expect(await train("twice", ["--resume"])).toMatchObject({ code: 0 })
    await expectSame("twice", whole)
  })

  it("by the same signal again at once, as npx hands it on, or by SIGHUP after it, is saved", async () => {
    let [child, sent]: [ChildProcess | undefined, boolean] = [undefined, false]
    const stopped = await gigpo(["train", "small/config.yaml", "--set", "run=echo"], {
      cwd: folder,
      onStart: (started) => {
        child = started
      },
      onOutput: (stdout) => {
        if (!sent && /^iteration 3\/6/m.test(stdout)) sent = child!.kill("SIGTERM")
        if (!/Stopping/.test(stdout)) return
        child!.kill("SIGTERM")
        child!.kill("SIGHUP")
      },
    })
    expect(stopped.code).toBe(143)
    expect(stopped.stdout).toMatch(/The state after iteration \d is saved/)
  })

  it("by kill -9 resumes from its last checkpoint with the same result", async () => {
    const stopped = await train("killed", [], { after: /^iteration 3\/6/m, names: ["SIGKILL"] })
    expect(stopped.code).toBeNull()
    expect(await train("killed", [])).toMatchObject({ code: 2, stderr: expect.stringContaining("RUN_EXISTS") })
    expect(await train("killed", ["--resume"])).toMatchObject({ code: 0 })
    await expectSame("killed", whole)
  })

  it("while another works in its folder is rejected", async () => {
    let second: Promise<Outcome> | undefined
    const words = ["train", "small/config.yaml", "--set", "run=locked"]
    const first = await gigpo(words, {
      cwd: folder,
      onOutput: (stdout, kill) => {
        if (second || !/^iteration 2\/6/m.test(stdout)) return
        kill("SIGSTOP") // holds the run open for as long as it takes
        second = gigpo([...words, "--overwrite"], { cwd: folder }).finally(() => kill("SIGCONT"))
      },
    })
    expect(await second).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/Process \d+ .* is using this run folder/),
    })
    expect(first.code).toBe(0)
    await expectSame("locked", whole)
  })
})
