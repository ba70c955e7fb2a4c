import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { verifyCheckpoint } from "../../src/runs/checkpoint.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

// Runs that go wrong, as whole processes: what they exit with, and what they leave.

describe.skipIf(!built)("a training that goes wrong (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (words: readonly string[]) => await gigpo(words, { cwd: folder })
  const train = async (name: string, ...sets: string[]) =>
    await run(["train", "small/config.yaml", ...[`run=${name}`, ...sets].flatMap((set) => ["--set", set])])
  const checkpoints = async (name: string) => (await readdir(join(folder, name, "checkpoints"))).sort()

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-guards-"))
    expect(await run(["init", "sokoban", "small", ...tiny])).toMatchObject({ code: 0 })
    expect(await run(["sft", "small/config.yaml", "--in-place"])).toMatchObject({ code: 0 })
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  const short = ["training.checkpointEvery=1", "training.evaluation.every=0", "training.iterations=12"]
  const exploding = "training.optimizer.learningRate={ from: 0.001, to: 1.0e+9, after: 2, over: 1 }"

  it.each(["1", "2"])(
    "by a learning rate of 1e9 fails, names its last good checkpoint and keeps it (of %s)",
    async (keep) => {
      const name = `exploded-${keep}`
      const { code, stderr } = await train(name, ...short, exploding, `training.keepCheckpoints=${keep}`)
      expect(code).toBe(4)
      expect(stderr).toMatch(/\[NON_FINITE\]/)
      const [, good, iteration] = /The last good checkpoint is (\S+), after iteration (\d+)\./.exec(stderr)!
      expect(good).toBe(join(folder, name, "checkpoints", `iteration-${iteration}`))
      expect(Number(iteration)).toBe(3)
      const steps = (await checkpoints(name)).filter((one) => one.startsWith("iteration-"))
      expect(steps.at(-1)).toBe("iteration-3")
      expect(await verifyCheckpoint(good!)).toMatchObject({ iteration: 3 })
      expect((await readdir(join(folder, name))).filter((one) => /^(failure-\d+|model)$/.test(one))).toEqual([
        expect.stringMatching(/^failure-/),
      ])
      // It can be loaded, and a run can resume from it.
      const sane = ["training.optimizer.learningRate=0.001", "training.iterations=4"]
      const forked = ["train", "small/config.yaml", "--fork", good!]
      for (const set of [`run=again-${keep}`, ...sane]) forked.push("--set", set)
      expect(await run(forked)).toMatchObject({ code: 0, stderr: "" })
    },
  )

  it.each(["12", "3"])(
    "by a learning rate of 1e9 from its beginning fails, also within %s iterations",
    async (iterations) => {
      const name = `never-${iterations}`
      const sets = [...short, `training.iterations=${iterations}`, "training.optimizer.learningRate=1.0e+9"]
      const { code, stderr } = await train(name, ...sets)
      expect(code).toBe(4)
      expect(stderr).toMatch(/There is no good checkpoint.*\[NON_FINITE\]/)
      expect((await checkpoints(name)).filter((one) => one.startsWith("iteration-"))).toEqual([])
    },
  )

  it("by a learning rate of 1e9 in a fork of another run names the other run's checkpoint", async () => {
    expect(await train("good", "training.iterations=2", "training.checkpointEvery=1")).toMatchObject({ code: 0 })
    const sets = ["run=worse", "training.optimizer.learningRate=1.0e+9", "training.checkpointEvery=1"]
    const words = ["train", "small/config.yaml", "--fork", "good", ...sets.flatMap((set) => ["--set", set])]
    const { code, stderr } = await run(words)
    expect(code).toBe(4)
    expect(stderr).toContain(
      `The last good checkpoint is ${join(folder, "good", "checkpoints", "iteration-2")}, after iteration 2.`,
    )
    expect(await verifyCheckpoint(join(folder, "good", "checkpoints", "iteration-2"))).toMatchObject({ iteration: 2 })
  })

  const environment = async (name: string, step: string) => {
    await writeFile(
      join(folder, `${name}.mjs`),
      `let steps = 0
      export default {
        name: "${name}",
        *tasks() { for (let index = 0; ; index++) yield { index } },
        async start() {
          const first = { text: "here", anchor: "here" }
          const end = { observation: first, reward: 0, terminated: true, truncated: false, metrics: { success: 0 } }
          return { first, step: async () => { steps++; ${step}; return end }, async [Symbol.asyncDispose]() {} }
        },
        prompt: (task, history, now) => [{ role: "user", content: now.text }],
        parse: (reply) => ({ action: reply, valid: true }),
      }`,
    )
    return `environment={ use: ./../${name}.mjs }`
  }

  it("with rejected promises of its environment warns once, and continues", async () => {
    const leaky = await environment("leaky", 'void Promise.reject(new Error("not awaited"))')
    const { code, stdout, stderr } = await train("leaked", leaky, "training.iterations=2")
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    expect(stdout.match(/leaky: an unhandled promise was rejected: not awaited/g)).toHaveLength(1)
    expect(stdout).toMatch(/leaky: \d+ unhandled promises were rejected\./)
  })

  it("because its environment throws in a timer is saved, and ends with the environment's name", async () => {
    const late = "if (steps === 30) setTimeout(() => { throw new Error('the connection broke') })"
    const timed = await environment("timed", late)
    const { code, stdout, stderr } = await train("timed", timed, "training.evaluation.every=0")
    expect(code).toBe(4)
    expect(stderr).toBe(
      "gigpo: timed: an error was thrown in a timer or another callback, where only the environment can catch it: " +
        "the connection broke [BAD_ENVIRONMENT]\n",
    )
    const iteration = Number(/The state after iteration (\d+) is saved\. To resume: /.exec(stdout)?.[1])
    expect(await checkpoints("timed")).toContain(`iteration-${iteration}`)
  })

  it("because its environment throws in timer after timer is saved all the same", async () => {
    const late = "if (steps >= 30) setInterval(() => { throw new Error('the connection broke') }, 1)"
    const timed = await environment("ticking", late)
    const { code, stdout, stderr } = await train("ticking", timed, "training.evaluation.every=0")
    expect({ code, stderr }).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^gigpo: ticking: .*\[BAD_ENVIRONMENT\]\n$/),
    })
    expect(stdout).toMatch(/The state after iteration \d+ is saved/)
  })

  it("because its environment ends the process is not taken for done", async () => {
    const ending = await environment("ending", "if (steps === 30) process.exit(0)")
    const { code, stderr } = await train("ended", ending, "training.evaluation.every=0")
    expect({ code, stderr }).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("ending: the environment ended the process"),
    })
  })

  it("because its environment fails three times in four ends with who, what and how often", async () => {
    const failing = await environment("failing", 'if (steps % 4 !== 0) throw new Error("no server")')
    const { code, stderr } = await train("failed", failing, "training.evaluation.every=0", "training.groups=4")
    expect(code).toBe(4)
    expect(stderr).toMatch(
      /^gigpo: failing: 9 of 12 episodes of iteration 1 failed, .* task 0, \{"index":0\}: failing: no server\. .*\[ENVIRONMENT_FAILED\]/,
    )
  })

  it("because its environment hangs in every turn ends by its deadline", async () => {
    const hanging = await environment("hanging", "await new Promise(() => {})")
    const { code, stderr } = await train(
      "hung",
      hanging,
      "training.evaluation.every=0",
      "training.rollout.turnTimeout=0.2",
    )
    expect(code).toBe(4)
    expect(stderr).toMatch(
      /6 of 6 episodes .* turn 0 took longer than 0\.2 s \(rollout\.turnTimeout\).*\[ROLLOUT_TIMEOUT\]/,
    )
  })

  it("because its policy collapses warns, or stops where that was asked for, after saving", async () => {
    const bounds = ["training.guards.minEntropy=100", "training.guards.patience=2", "training.evaluation.every=0"]
    const warned = await train("warned", ...bounds)
    expect(warned).toMatchObject({ code: 0, stderr: "" })
    expect(warned.stdout).toMatch(/policy\/entropy\), below its bound of 100 \(guards\.minEntropy\) for 2 iterations/)
    const stopped = await train("stopped", ...bounds, "training.guards.collapse=stop", "training.checkpointEvery=100")
    expect(stopped.code).toBe(4)
    expect(stopped.stderr).toMatch(/collapsed by iteration 2\. .*\[COLLAPSED\]/)
    expect(await checkpoints("stopped")).toEqual(["iteration-2"])
  })
})
