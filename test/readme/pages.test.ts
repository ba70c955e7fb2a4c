import { execFile } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Command } from "commander"
import { describe, expect, it } from "vitest"
import { commands, define } from "../../src/cli/commands.ts"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { configSchema } from "../../src/cli/config/schema.ts"
import { renamed } from "../../src/options/renamed.ts"
import { anchorsOf, gigpoWords, lines, linksOf, pages, root } from "./pages.ts"

// What can be known of the pages without running what they show; programs.test.ts runs it.

/** What stands around code that is not a program of its own, having no import: a statement that a page speaks of. */
const around = `
import { type Environment, gigpo, type NativePolicy, type Run, type Tokenizer, train } from "gigpo"
import { wrapEstimator } from "gigpo/advantages"
import { clippedSurrogate } from "gigpo/losses"
import { replayFailure } from "gigpo/loop"
import runningBaseline from "../../../examples/extend/estimator.ts"
import cispo from "../../../examples/extend/loss.ts"
import { page } from "../../../examples/extend/observer.ts"
import { drafting, sums } from "../../../examples/extend/player.ts"
declare const [policy, tokenizer, environment, run]: [NativePolicy, Tokenizer, Environment, Run]
`

/** Folders that programs and commands of the pages make. */
const made = /^(demo|models|runs|build-cuda|build\/fuzz|checkpoints|weights)\b/

/** Names of earlier versions of options, without those that still name something else: an option, a command, a field. */
const others = new Set([...keysOf(configSchema()), ...Object.keys(commands), "length", "think"])
const earlier = Object.keys(renamed.options)
  .map((name) => name.split(".").at(-1)!)
  .filter((name) => !others.has(name))

const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const all = pages()
const least = "model: models/small\nenvironment: { name: sokoban }\n"

describe.each(all)("$path", (one) => {
  const { text, blocks, inline } = one
  const shell = blocks.filter(({ language }) => language === "sh").flatMap(lines)
  const commands = [...shell.map(({ command }) => command), ...inline.filter((code) => /^(npx )?gigpo \w/.test(code))]

  it("has code of kinds that are checked", () => {
    expect(blocks.filter(({ language }) => !["ts", "sh", "yaml"].includes(language))).toEqual([])
  })

  it("has commands that gigpo takes, with options that it knows", async () => {
    for (const words of commands.map(gigpoWords)) if (words) await parse(words)
  })

  it("sets keys that there are, to values that they take", () => {
    const sets = text.matchAll(/--set ([\w.]+=[^\s`]+)/g)
    for (const [, set] of sets) {
      expect(() => resolveConfig(least, [set!])).not.toThrow()
    }
    for (const { language, code } of blocks)
      if (language === "yaml") {
        const before = /^environment:/m.test(code) ? least.replace(/^environment:.*\n/m, "") : least
        expect(() => resolveConfig(`${before}${code}`)).not.toThrow()
      }
  })

  it("names no option as earlier versions did", () => {
    const named = inline.map((code) => /^[\w.]+/.exec(code)?.[0].split(".").at(-1) ?? "")
    expect(named.filter((name) => earlier.includes(name))).toEqual([])
  })

  it("runs scripts of npm that there are", () => {
    const named = [...text.matchAll(/npm (?:run (?:--silent )?)?([\w:]+)/g)].map(([, name]) => name!)
    const own = ["ci", "install", "pack", "exec", "publish"]
    expect(named.filter((name) => !own.includes(name) && !Object.hasOwn(scripts, name))).toEqual([])
  })

  it("names files that there are", () => {
    const linked = linksOf(one).map(({ file }) => file)
    const places = readdirSync(root)
    const coded = inline.filter((code) => /^[\w.-]+\/[\w./-]*$/.test(code) && !made.test(code))
    const ours = coded.filter((code) => places.includes(code.split("/")[0]!))
    expect([...linked, ...ours].filter((file) => !existsSync(join(root, file)))).toEqual([])
  })

  it("links to headings that there are", () => {
    const anchored = linksOf(one).filter(({ anchor }) => anchor !== "")
    const missing = anchored.filter(({ file, anchor }) => {
      const target = all.find((page) => page.path === file)
      return !target || !anchorsOf(target).includes(anchor)
    })
    expect(missing).toEqual([])
  })
})

it("programs of the pages keep the types", async () => {
  // In the repository, where the package is found by its name.
  const folder = await mkdtemp(join(root, "test/readme/types-"))
  try {
    const programs = all.flatMap(({ path, blocks }) =>
      blocks
        .filter(({ language }) => language === "ts")
        .map(({ code }) => (/^import /m.test(code) ? code : around + code))
        .map((code, index) => [`${path.replaceAll(/\W/g, "-")}-${index}.ts`, code] as const),
    )
    expect(programs.length).toBeGreaterThan(5)
    // Clients are not this package's, and may not be installed.
    const clients = existsSync(join(root, "examples/agents/node_modules"))
    for (const [name, code] of programs)
      if (clients || !code.includes('from "openai"'))
        await writeFile(join(folder, name), code.replace('from "./', 'from "../../../examples/extend/'))
    const paths = {
      gigpo: ["../../../src/entries/index.ts"],
      "gigpo/*": ["../../../src/entries/*.ts"],
      openai: ["../../../examples/agents/node_modules/openai/index.d.mts"],
    }
    const config = { extends: "../../../tsconfig.json", compilerOptions: { paths }, include: ["."] }
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config))
    const tsc = join(root, "node_modules/typescript/bin/tsc")
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", folder]).catch((error) => error)
    expect(stdout).toBe("")
  } finally {
    await rm(folder, { recursive: true })
  }
})

/** Reads a command as gigpo does, and does nothing. */
async function parse([name, ...words]: readonly string[]): Promise<void> {
  const command = (await commandsByName()).get(name!)
  expect(command, `gigpo ${name}`).toBeDefined()
  if (words.length === 0) return // it is spoken of
  for (const one of [command!, ...command!.commands])
    one
      .exitOverride()
      .configureOutput({ writeErr: () => {} })
      .action(() => {})
  await command!.parseAsync([...words], { from: "user" }).catch((error) => {
    throw new Error(`gigpo ${[name, ...words].join(" ")}: ${error.message}`)
  })
}

/** As new each time: a command remembers what it read. */
async function commandsByName(): Promise<ReadonlyMap<string, Command>> {
  const made = Object.keys(commands).map((name) => new Command(name))
  await Promise.all(made.map(define))
  return new Map(made.map((command) => [command.name(), command]))
}

/** Names of all properties in a JSON Schema. */
function keysOf(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return []
  const { properties } = schema as { readonly properties?: object }
  return [...Object.keys(properties ?? {}), ...Object.values(schema).flatMap(keysOf)]
}
