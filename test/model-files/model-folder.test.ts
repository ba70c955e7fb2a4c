import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"

const folder = mkdtempSync(join(tmpdir(), "gigpo-model-folder-"))
afterAll(() => rmSync(folder, { recursive: true }))

function run(name: string, ...inside: string[]): string {
  const path = join(folder, name)
  for (const one of ["checkpoints", ...inside]) mkdirSync(join(path, one), { recursive: true })
  for (const file of ["config.json", "metrics.jsonl"]) writeFileSync(join(path, file), "{}\n")
  return path
}

const file = join(folder, "file")
writeFileSync(file, "")
mkdirSync(join(folder, "models"))

describe.each([
  ["NativePolicy.open", (path: string) => NativePolicy.open(path)],
  ["Tokenizer.open", (path: string) => Tokenizer.open(path)],
])("%s", (_, open) => {
  it.each([
    [join(folder, "none"), `There is no folder ${join(folder, "none")}. Give a model folder`],
    ["src/nothing-there", `There is no folder ${join(process.cwd(), "src/nothing-there")}. Give a model folder`],
    ["src/nothing-there", "(owner/name): src/nothing-there@main, since a folder src is here."],
    [file, `${file} is a file`],
    [join(file, "below"), `There is no folder ${join(file, "below")}`],
    [
      run("done", "model", "checkpoints/iteration-3"),
      `Its newest state is its model, ${join(folder, "done", "model")}.`,
    ],
    [
      run("stopped", "checkpoints/iteration-9", "checkpoints/iteration-10", "checkpoints/suspect-11"),
      "checkpoints/iteration-10.",
    ],
    [run("begun"), "is a run, not a model. It has no model and no checkpoint"],
  ])("says of %s what it is", async (path, sentence) => {
    await expect(open(path)).rejects.toEqual(
      expect.objectContaining({ code: "BAD_MODEL", message: expect.stringContaining(sentence) }),
    )
  })
})
