import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

/** Every file and folder below, with its bytes. */
async function snapshot(root: string): Promise<Record<string, string>> {
  const entries = await readdir(root, { withFileTypes: true, recursive: true })
  const paths = entries.map((entry) => join(entry.parentPath, entry.name))
  const read = async (path: string) => ((await stat(path)).isFile() ? await readFile(path, "base64") : "folder")
  return Object.fromEntries(await Promise.all(paths.map(async (path) => [path, await read(path)])))
}

const set = (...sets: string[]) => sets.flatMap((one) => ["--set", one])

/** Each is rejected; `demo` is a model, its clone and a finished run of it. */
const commands: readonly (readonly string[])[] = [
  ["init", "sokoban", "demo"],
  ["init", "sokoban", "new", ...set("initialModel.layers=0")],
  ["init", "sokoban", "new", ...set("environment.size=7")],
  ["sft", "demo/config.yaml", "--in-place", "--overwrite", ...set("sft.epochs=0")],
  ["sft", "demo/config.yaml", "--in-place", "--overwrite", ...set("sft.optimizer.warmup=99")],
  ["sft", "demo/config.yaml", "--out", "demo/run"],
  ["sft", "demo/config.yaml", "--out", "demo/model", "--overwrite"],
  ["sft", "demo/config.yaml", "--out", "demo/notes.txt/model"],
  ["sft", "demo/config.yaml", "--in-place", "--resume"],
  ["evaluate", "demo/config.yaml", ...set("training.evaluation.tasks=0")],
  ["evaluate", "demo/run/config.json", "--model", "demo/nowhere"],
  ["play", "demo/config.yaml", "--task", "none"],
  ["play", "sokoban", "--expert", ...set("environment.boxes=no")],
  ["estimate", "demo/config.yaml", "--memory", "little"],
  ["retriever", "demo/nothing.jsonl"],
  ["config", "demo/config.yaml", ...set("training.lss.klWeight=1")],
  ["doctor", "--fast"],
  ...(["--overwrite", "--resume"] as const).flatMap((flag) =>
    [
      "training.loss.clipDual=0.5",
      "training.loss.clipLow=1.5",
      "training.loss.entropyWeight=much",
      "training.estimator.gamma=0",
      "training.estimator.similarity=0",
      "training.estimator.use=./nowhere.mjs",
      "training.estimator.use=./broken.mjs",
      "training.optimizer.beta1=1",
      "training.optimizer.learningRate={ from: 1 }",
      "training.rollout.temperature=1e-9",
      "training.groups=0",
      "training.batchSize=4",
      "model=demo/narrow",
      "environment.name=sokobann",
      "lora.rank=0",
    ].map((wrong) => ["train", "demo/config.yaml", flag, ...set(wrong)]),
  ),
  ["train", "demo/config.yaml"],
  ["train", "demo/config.yaml", "--resume", ...set("training.groups=9")],
  ["train", "demo/config.yaml", "--overwrite", "--fork", "demo/run/checkpoints/iteration-6"],
  ["train", "demo/config.yaml", "--fork", "demo/model", ...set("run=demo/branch")],
]

describe.skipIf(!built)("a rejected command (needs dist: npm run build:ts)", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-rejections-"))
    for (const words of [
      ["init", "sokoban", "demo", ...tiny],
      ["train", "demo/config.yaml", "--json"],
    ])
      expect(await gigpo(words, { cwd: folder })).toMatchObject({ code: 0 })
    // A tokenizer of more tokens than the model has, and a module that throws.
    await cp(join(folder, "demo/model"), join(folder, "demo/narrow"), { recursive: true })
    const path = join(folder, "demo/narrow/config.json")
    const text = await readFile(path, "utf8")
    await writeFile(path, text.replace(/"vocab_size": \d+/, '"vocab_size": 100'))
    await writeFile(join(folder, "demo/broken.mjs"), "throw new Error('of its own')\n")
    await writeFile(join(folder, "demo/notes.txt"), "mine")
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("changes no file", async () => {
    const before = await snapshot(folder)
    const left = [...commands]
    const worker = async () => {
      for (let words = left.shift(); words; words = left.shift()) {
        const { code, stdout, stderr } = await gigpo(words, { cwd: folder })
        const said = `gigpo ${words.join(" ")}\n${stdout}${stderr}`
        expect(code, said).toBeGreaterThan(0)
        expect(stderr, said).toMatch(/^(gigpo: |error: )/m)
        expect(stderr, said).not.toMatch(/^\s+at |INTERNAL|Nothing was saved|To resume/m)
      }
    }
    await Promise.all([worker(), worker()])
    expect(await snapshot(folder)).toEqual(before)
  })
})
