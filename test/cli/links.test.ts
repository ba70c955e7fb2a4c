import { execFileSync } from "node:child_process"
import { cp, mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { hashFile } from "../../src/files/manifest.ts"
import { type Kind, type Place, putLink, remove, secret, tree } from "../runs/links.ts"
import { built, casesAt, gigpo, type Outcome, tiny } from "./gigpo.ts"

describe.skipIf(!built || process.platform === "win32")(
  "a folder from elsewhere, with links (needs dist: npm run build:ts)",
  () => {
    let folder: string
    const run = async (words: readonly string[], cwd = folder) => await gigpo(words, { cwd, input: "hello\n" })
    const received = (name: string) => join(folder, "small", name)
    beforeAll(async () => {
      folder = await realpath(await mkdtemp(join(tmpdir(), "gigpo-links-cli-")))
      const little = [...tiny, "--set", "training.iterations=2", "--set", "tensorboard=true"]
      expect(await run(["init", "sokoban", "small", ...little])).toMatchObject({ code: 0 })
      expect(await run(["train", "small/config.yaml", "--json"])).toMatchObject({ code: 0 })
    })
    afterAll(async () => await rm(folder, { recursive: true, force: true }))

    /** Runs a command on a folder with a link; what lies outside must not have changed, nor be told. */
    async function tried(
      source: string,
      level: string,
      kind: Kind,
      words: (place: Place) => readonly string[],
    ): Promise<Outcome> {
      const place = await putLink(received(source), level, kind)
      const before = await tree(place.outside)
      const outcome = await run(words(place), place.root)
      expect(await tree(place.outside)).toEqual(before)
      const written = Object.entries(await tree(place.root)).filter(([path]) => !path.startsWith(place.outside))
      expect(written.filter(([, content]) => content.includes(secret))).toEqual([])
      expect(outcome.stdout + outcome.stderr).not.toContain(secret)
      expect(outcome.stderr).not.toContain("INTERNAL")
      await remove(place)
      return outcome
    }

    const config = () => join(folder, "small", "config.yaml")
    const ours = () => ["--set", `model=${received("model")}`]
    const own = (place: Place) => ["--set", `run=${join(place.root, "own")}`, ...ours()]
    const model = (place: Place) => [...own(place), "--set", `model=${place.folder}`]

    const refusing = [
      ["chat", "model", "tokenizer.json", ({ folder }: Place) => ["chat", folder, "--max-tokens", "2"]],
      ["serve", "model", "config.json", ({ folder }: Place) => ["serve", folder, "--port", "0"]],
      ["engine", "model", "config.json", ({ folder }: Place) => ["engine", folder, "--port", "0"]],
      ["evaluate", "model", "model.safetensors", ({ folder }: Place) => ["evaluate", config(), "--model", folder]],
      ["play", "model", "gigpo.json", ({ folder }: Place) => ["play", config(), "--model", folder]],
      ["anchors", "model", "generation_config.json", ({ folder }: Place) => ["anchors", config(), "--model", folder]],
      ["estimate", "model", "config.json", (place: Place) => ["estimate", config(), ...model(place)]],
      ["train", "model", "model.safetensors", (place: Place) => ["train", config(), ...model(place)]],
      [
        "sft",
        "model",
        "model.safetensors",
        (place: Place) => ["sft", config(), ...model(place), "--out", join(place.root, "out")],
      ],
      ["sft --in-place", "model", "tokenizer.json", (place: Place) => ["sft", config(), ...model(place), "--in-place"]],
      ["chat with a run", "run", "model", ({ folder }: Place) => ["chat", folder, "--max-tokens", "2"]],
      ["evaluate of a run", "run", "checkpoints", ({ folder }: Place) => ["evaluate", config(), "--model", folder]],
      [
        "train --resume",
        "run",
        "checkpoints/iteration-2",
        ({ folder }: Place) => ["train", config(), "--set", `run=${folder}`, ...ours(), "--resume"],
      ],
      [
        "train --overwrite",
        "run",
        "episodes",
        ({ folder }: Place) => ["train", config(), "--set", `run=${folder}`, ...ours(), "--overwrite"],
      ],
      [
        "train --fork",
        "run",
        "metrics.jsonl",
        (place: Place) => ["train", config(), ...own(place), "--fork", place.folder],
      ],
      [
        "sft --data",
        "run",
        "episodes",
        (place: Place) => ["sft", config(), ...own(place), "--data", place.folder, "--out", join(place.root, "out")],
      ],
      [
        "episodes",
        "run",
        "episodes/iteration-1.episodes",
        ({ folder }: Place) => ["episodes", folder, "--iteration", "1"],
      ],
      ["export csv", "run", "metrics.jsonl", ({ folder }: Place) => ["export", folder, "--as", "csv", "--out", "x"]],
      [
        "export tensorboard",
        "run",
        "config.json",
        ({ folder }: Place) => ["export", folder, "--as", "tensorboard", "--out", "x"],
      ],
      ["export jsonl", "run", "episodes", ({ folder }: Place) => ["export", folder, "--as", "jsonl", "--out", "x"]],
      [
        "export parquet",
        "run",
        "episodes/iteration-1.episodes",
        ({ folder }: Place) => ["export", folder, "--as", "parquet", "--out", "x"],
      ],
      ["export adapter", "run", "model", ({ folder }: Place) => ["export", folder, "--as", "adapter", "--out", "x"]],
      ["recover", "run", "checkpoints", ({ folder }: Place) => ["recover", folder]],
    ] as const
    it.each(refusing.map(([name, ...rest], at) => [name, casesAt<Kind>(["absolute", "pipe"], at), ...rest] as const))(
      "%s rejects it and names the link (%j)",
      async (_, kinds, source, level, words) => {
        for (const kind of kinds) {
          const outcome = await tried(source, level, kind, words)
          expect(outcome).toMatchObject({ code: 2, stderr: expect.stringContaining("[UNSAFE_PATH]") })
          expect(outcome.stderr.replaceAll(/\s+/g, " ")).toContain(level)
        }
      },
    )

    it.each([
      ["runs", 0, ({ root }: Place) => ["runs", root, "--json"]],
      ["report", 1, ({ folder }: Place) => ["report", folder, "--out", "report.html"]],
      ["view", 2, ({ folder }: Place) => ["view", folder, "--port", "0"]],
    ] as const)("%s shows nothing of what lies outside", async (_, at, words) => {
      for (const level of casesAt(["config.json", "metrics.jsonl", "checkpoints"], at))
        expect(await tried("run", level, "absolute", words)).toMatchObject({
          code: words.length > 1 ? 2 : expect.any(Number),
        })
    })

    it("is opened without moving files to the targets of links", async () => {
      const home = join(folder, "home")
      await mkdir(join(home, ".ssh"), { recursive: true })
      await writeFile(join(home, ".bashrc"), "mine")
      const model = join(folder, "downloads", "model")
      await cp(received("model"), model, { recursive: true })
      await symlink("../../home", join(model, "d"))
      const ready = join(model, ".gigpo-ready")
      await mkdir(join(ready, "d", ".ssh"), { recursive: true })
      const names = ["d/.bashrc", "d/.ssh/authorized_keys"]
      for (const name of names) await writeFile(join(ready, name), "theirs")
      const file = async (name: string) => ({
        ...{ name, bytes: (await stat(join(ready, name))).size, sha256: await hashFile(join(ready, name)) },
      })
      await writeFile(
        join(ready, "gigpo.json"),
        JSON.stringify({ gigpo: "1.0.0", files: await Promise.all(names.map(file)) }),
      )
      execFileSync("tar", ["cf", "model.tar", "model"], { cwd: join(folder, "downloads") })
      await rm(model, { recursive: true })
      execFileSync("tar", ["xf", "model.tar"], { cwd: join(folder, "downloads") })
      const before = await tree(model)
      for (const words of [
        ["chat", model],
        ["recover", model],
        ["sft", config(), "--set", `model=${model}`, "--in-place"],
      ])
        expect(await run(words)).toMatchObject({
          code: 2,
          stderr: expect.stringMatching(/UNSAFE_PATH|UNFINISHED_WRITE/),
        })
      expect(await tree(model)).toEqual(before)
      expect(await tree(home)).toEqual({ [join(home, ".bashrc")]: "mine", [join(home, ".ssh")]: "folder" })
    })

    it("loses no target of its manifests when it is resumed", async () => {
      const theirs = join(folder, "theirs")
      await cp(received("run"), theirs, { recursive: true })
      const elsewhere = join(folder, "elsewhere")
      await mkdir(elsewhere)
      await writeFile(join(elsewhere, "victim.txt"), "mine")
      const step = join(theirs, "checkpoints", "iteration-1")
      await mkdir(step)
      await symlink(elsewhere, join(step, "d"))
      const files = [{ name: "d/victim.txt", bytes: 4, sha256: await hashFile(join(elsewhere, "victim.txt")) }]
      await writeFile(
        join(step, "manifest.json"),
        JSON.stringify({ gigpo: "1", version: 2, iteration: 1, handle: {}, files }),
      )
      const more = ["--set", "training.iterations=4", "--set", "training.keepCheckpoints=1"]
      const outcome = await run(["train", "small/config.yaml", "--set", `run=${theirs}`, "--resume", ...more])
      expect(outcome.stderr).toMatch(/UNSAFE_PATH/)
      expect(await readFile(join(elsewhere, "victim.txt"), "utf8")).toBe("mine")
    })

    it("is created by one of six concurrent starts", async () => {
      const words = ["train", "small/config.yaml", "--set", "run=contested", "--resume", "auto", "--json"]
      const outcomes = await Promise.all(Array.from({ length: 6 }, () => run(words)))
      // One that starts late may find the run complete.
      const refused = outcomes.filter(({ code }) => code !== 0)
      expect(outcomes.length - refused.length).toBeGreaterThan(0)
      for (const { stderr } of refused) {
        expect(stderr).toContain("[RUN_LOCKED]")
        expect(stderr).not.toMatch(/overwrite|is a broken link/)
      }
    })
  },
)
