import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

// What a run says when it ends: which evaluation was the best, why it ended early, why episodes failed.

/** Solves its held-out tasks after one iteration of the process alone; in training every second task fails. */
const foretold = `let iteration = 0
export default {
  name: "foretold",
  *tasks(split) {
    if (split === "train") iteration++
    for (let index = 0; ; index++) yield { index, split }
  },
  async start({ index, split }) {
    const first = { text: "here", anchor: "here" }
    const success = split === "test" && iteration === 1 ? 1 : 0
    const end = { observation: first, reward: success, terminated: true, truncated: false, metrics: { success } }
    const step = async () => {
      if (split === "train" && index % 2 === 1) throw new Error("no server " + iteration)
      return end
    }
    return { first, step, async [Symbol.asyncDispose]() {} }
  },
  prompt: (task, history, now) => [{ role: "user", content: now.text }],
  parse: (reply) => ({ action: reply, valid: true }),
}
`

describe.skipIf(!built)("the end of a training (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = async (...words: string[]) => await gigpo(words, { cwd: folder })
  const train = async (name: string, sets: readonly string[], ...flags: string[]) => {
    const own = [`run=${name}`, "environment={ use: ./../foretold.mjs }", "training.evaluation.every=1", ...sets]
    return await run("train", "small/config.yaml", ...own.flatMap((set) => ["--set", set]), ...flags)
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-ending-"))
    expect(await run("init", "sokoban", "small", ...tiny)).toMatchObject({ code: 0 })
    expect(await run("sft", "small/config.yaml", "--in-place")).toMatchObject({ code: 0 })
    await writeFile(join(folder, "foretold.mjs"), foretold)
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("prints the best evaluation, the command to evaluate its checkpoint, and the reasons of failed episodes", async () => {
    const { code, stdout, stderr } = await train("best", ["training.iterations=4", "training.keepCheckpoints=1"])
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    const [, words] =
      /^The best evaluation was after iteration 1: success 100\.0 %.* To evaluate that model: gigpo (.*)$/m.exec(
        stdout,
      )!
    expect(words).toBe("evaluate best/config.json --model best/checkpoints/iteration-1")
    expect(await run(...words!.split(" "))).toMatchObject({ code: 0, stderr: "" })
    expect(stdout.match(/^Episodes fail: .*$/gm)).toEqual([
      'Episodes fail: 3 × foretold: no server 1, first in task {"index":1,"split":"train"}.',
    ])
    expect(stdout).toContain('\nFailed: 12 × foretold: no server 1, first in task {"index":1,"split":"train"}.\n')
    const lines = (await readFile(join(folder, "best/metrics.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    for (const { time, metrics } of lines) {
      expect(new Date(time).toISOString()).toBe(time)
      // Only zero advantages: there is no ratio to report.
      for (const name of ["policy/ratio", "policy/entropy", "policy/kl", "loss/policy", "loss/kl"])
        expect(metrics).not.toHaveProperty([name])
    }
  })

  it("explains an early stop, and continues if more is allowed", async () => {
    const plateau = (evaluations: number) => ["training.iterations=6", `training.stop.plateau=${evaluations}`]
    const first = await train("plateau", plateau(2))
    expect(first).toMatchObject({ code: 0, stderr: "" })
    expect(first.stdout).toContain(
      "The run ends after iteration 3 of 6: none of the last 2 evaluations was better than the one after iteration 1 (stop.plateau).",
    )
    expect(await readdir(join(folder, "plateau/model"))).toContain("model.safetensors")
    const same = await train("plateau", plateau(2), "--resume")
    expect(same).toMatchObject({ code: 0, stdout: expect.stringMatching(/none of the last 2 evaluations/) })
    const more = await train("plateau", plateau(3), "--resume")
    expect(more.stdout).toContain("The run ends after iteration 4 of 6: none of the last 3 evaluations")
  })
})
