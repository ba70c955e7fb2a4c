import { execFile } from "node:child_process"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Command } from "commander"
import { describe, expect, it } from "vitest"
import { commands, define } from "../../src/cli/commands.ts"
import { built } from "./gigpo.ts"

const root = join(import.meta.dirname, "../..")
const program = join(root, "test/entries/programs/loaded.mjs")

/** Modules that a command line loads, relative to the package's folder. */
async function loaded(...words: readonly string[]): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, join(root, "modules/cli/main.js"), ...words])
  const urls: string[] = JSON.parse(stdout.trimEnd().split("\n").at(-1)!)
  return urls.filter((url) => url.startsWith("file:")).map((url) => relative(root, fileURLToPath(url)))
}

const commandFiles = (files: readonly string[]) => files.filter((file) => file.startsWith("modules/cli/commands/"))

describe.skipIf(!built)("loading of commands (needs modules/: npm run build:ts)", () => {
  it.each(["--help", "--version", "help"])("gigpo %s loads the code of no command", async (word) => {
    const files = await loaded(word)
    expect(files).toContain("modules/cli/commands.js")
    expect(commandFiles(files)).toEqual([])
    expect(files.length).toBeLessThan(30)
  })

  it("a command loads only its own code", async () => {
    const files = await loaded("recover", "--help")
    expect(commandFiles(files)).toEqual(["modules/cli/commands/recover.js"])
    expect(files.length).toBeLessThan(60)
  })
})

it.each(Object.entries(commands))("%s is listed with the usage of its definition", async (name, { usage }) => {
  const command = new Command(name)
  expect(await define(command)).toBe(true)
  expect(command.usage()).toBe(usage)
  expect(command.description()).toMatch(/\.$/)
})
