import { existsSync, readdirSync, readFileSync } from "node:fs"
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { gigpo } from "../cli/gigpo.ts"
import { type Block, gigpoWords, lines, type Page, page, pages, root } from "./pages.ts"
import { outputOf, runnable } from "./run.ts"

// Every command and program of the pages, run with small numbers in the project that docs/quick-start.md makes. Blocks that cannot be run here say
// why: `<!-- not run: needs a GPU -->`. Programs without an import are statements that a page speaks of; pages.test.ts has the compiler check them.

/** Reasons that a page may give. */
const reasons = [
  "in a program that `gigpo gateway` starts",
  "needs Clang",
  "needs a GPU",
  "needs a download",
  "needs a pretrained model",
  "needs a question set",
  "needs a server",
  "needs Python",
]

/** Blocks that another test runs, by page and language. */
const elsewhere: Readonly<Record<string, string>> = {
  "README.md sh": "test/readme/programs.test.ts",
  "README.md ts": "test/readme/programs.test.ts",
  "docs/runs.md ts": "test/readme/programs.test.ts",
  "docs/algorithms.md sh": "test/algorithms/cli.test.ts",
}

/** Programs of examples/, which tests of their own run, and which pages show word for word. */
const examples = ["examples", "examples/extend"].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(root, folder, name), "utf8")),
)

const built = existsSync(join(root, "dist/cli/launch.cjs")) && existsSync(join(root, "build/Release/gigpo.node"))
const first = page("docs/quick-start.md")
const others = pages().filter((one) => one.path !== first.path && runsOf(one).length > 0)
/** No page takes as long, however slow the machine is. */
const patience = 1_200_000

it("pages give a known reason for what is not run", () => {
  const given = pages().flatMap(({ path, text }) =>
    [...text.matchAll(/<!-- not run: (.*) -->/g)].map(([, reason]) => ({ path, reason: reason! })),
  )
  expect(given.filter(({ reason }) => !reasons.includes(reason))).toEqual([])
  expect(given.length).toBe(pages().flatMap(({ blocks }) => blocks.filter(({ notRun }) => notRun)).length)
})

it("tests that run blocks elsewhere name their pages", () => {
  for (const [place, file] of Object.entries(elsewhere))
    expect(readFileSync(join(root, file), "utf8"), file).toContain(place.split(" ")[0])
})

describe.skipIf(!built)(`blocks of the pages${built ? "" : " (needs npm run build)"}`, () => {
  let project: string
  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), "gigpo-pages-"))
    await mkdir(join(project, "node_modules/.bin"), { recursive: true })
    await symlink(root, join(project, "node_modules/gigpo"), "dir")
    const command = `#!/bin/sh\nexec "${process.execPath}" "${join(root, "dist/cli/launch.cjs")}" "$@"\n`
    await writeFile(join(project, "node_modules/.bin/gigpo"), command, { mode: 0o755 })
    await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }))
    await run(first, project)
    await addInputs(project)
  }, patience)
  afterAll(() => rm(project, { recursive: true, force: true }))

  it("make a trained agent: docs/quick-start.md", () => {
    for (const name of ["config.yaml", "run/model/config.json", "grpo/metrics.jsonl"])
      expect(existsSync(join(project, "demo", name)), name).toBe(true)
  })

  it.each(others)("run: $path", { timeout: patience }, (one) => run(one, project))
})

/** Blocks of a page that are run here. */
function runsOf({ path, blocks }: Page): readonly Block[] {
  return blocks.filter(({ language, code, notRun }) => {
    if (notRun || elsewhere[`${path} ${language}`] || examples.includes(code)) return false
    return language === "sh" || (language === "ts" && /^import /m.test(code))
  })
}

async function run(one: Page, project: string): Promise<void> {
  for (const [index, block] of runsOf(one).entries()) {
    // A block that makes a project of its own has a folder of its own: the names may be those of another page.
    const makes = one.path !== first.path && /^(npx )?gigpo init /m.test(block.code)
    const folder = makes ? await mkdtemp(join(project, "made-")) : project
    if (block.language === "sh") for (const { command } of lines(block)) await runCommand(command, project, folder)
    else await runProgram(`${one.path.replaceAll(/\W/g, "-")}-${index}.ts`, block.code, project)
  }
}

async function runCommand(command: string, project: string, folder: string): Promise<void> {
  // A link is in the place of the package; scripts of npm run in a clone, and pages.test.ts looks for them.
  if (/^npm (install gigpo$|(ci|test|run)\b)/.test(command)) return
  const words = gigpoWords(command)
  if (words && ["view", "serve", "chat"].includes(words[0]!)) return await serveShortly(words, project)
  const env = { ...process.env, PATH: `${join(project, "node_modules/.bin")}${delimiter}${process.env.PATH}` }
  await outputOf("sh", ["-c", smaller(command.replace(/^npx gigpo /, "gigpo "))], folder, env)
}

/** Starts a server on any free port, and stops it as Ctrl-C does once it has printed its address. */
async function serveShortly(words: readonly string[], project: string): Promise<void> {
  const { code, stderr } = await gigpo([...words, "--port", "0"], {
    cwd: project,
    onOutput: (stdout, kill) => stdout.includes("\n") && kill("SIGINT"),
  })
  expect(code, stderr).toBe(0)
}

async function runProgram(name: string, code: string, project: string): Promise<void> {
  await writeFile(join(project, name), smallerProgram(code))
  await outputOf(process.execPath, [runnable(project, name)], project)
}

const small = ["iterations=2", "groups=4", "evaluation.every=1", "evaluation.tasks=8"]

/** Command with few iterations, groups and tasks. Iterations that a page names are those that are then there. */
function smaller(command: string): string {
  const sizes = small.map((one) => ` --set training.${one}`).join("")
  return command
    .replace(/^gigpo train .*/, (all) => all + sizes)
    .replace(/^gigpo sft (?!.*--data).*/, "$& --set sft.tasks=16 --set sft.epochs=2")
    .replace(/^gigpo evaluate (?!.*--benchmark).*/, "$& --set training.evaluation.tasks=8")
    .replace(/--repeats \d+/, "--repeats 1")
    .replace(/--iteration 12 --unsuccessful --task \S+/, "--iteration 2")
    .replace(/--show \S+/, "--show 1/0/0")
}

function smallerProgram(code: string): string {
  return code
    .replaceAll(/iterations: \d+/g, "iterations: 1")
    .replaceAll(/groups: \d+/g, "groups: 2")
    .replaceAll(/tasks: \d+/g, "tasks: 8")
    .replaceAll(/repeats: \d+/g, "repeats: 1")
    .replaceAll(/port: 8070/g, "port: 0")
}

/** What the other pages speak of: runs, models, and files of data in the layouts that docs/data.md shows. */
async function addInputs(project: string): Promise<void> {
  const copy = (from: string, to: string) => cp(join(project, from), join(project, to), { recursive: true })
  for (const name of ["a", "b", "gigpo", "grpo", "sokoban"]) await copy("demo/run", `runs/${name}`)
  await copy("demo/model", "models/sokoban")
  const messages = [
    { role: "user", content: "red 0" },
    { role: "assistant", content: "a" },
  ]
  await writeFile(join(project, "transcripts.jsonl"), `${JSON.stringify({ messages })}\n`.repeat(4))
  const pair = { prompt: "red 0", chosen: "a", rejected: "b" }
  await writeFile(join(project, "pairs.jsonl"), `${JSON.stringify(pair)}\n`.repeat(4))
}
