import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"

export const root = resolve(import.meta.dirname, "..")

/**
 * Writes a copy of the declarations in dist/ with two additions for TypeDoc: the purpose of each entry point, which tsc leaves out, as the comment
 * of its module; and `@interface` for types of options, so that the page of one lists its options instead of the name of a table.
 *
 * @param {string} out folder in the repository, from which types of packages are found
 * @returns {{ folder: string, entries: string[], tsconfig: string }} `entries`: paths of the entry points
 */
export function writeTypes(out) {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  cpSync(join(root, "dist"), out, { recursive: true, filter: (path) => !/\.(js|cjs|mjs|map|css|html)$/.test(path) })
  for (const name of declarations(out)) {
    const text = readFileSync(join(out, name), "utf8")
    const added = withInterfaces(/^entries[/\\]/.test(name) ? withPurpose(name, text) : text)
    if (added !== text) writeFileSync(join(out, name), added)
  }
  const tsconfig = join(out, "tsconfig.json")
  const compilerOptions = { paths: {}, rootDir: out }
  writeFileSync(
    tsconfig,
    JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, include: ["."], exclude: [] }),
  )
  return {
    folder: out,
    tsconfig,
    entries: declarations(join(out, "entries")).map((name) => join(out, "entries", name)),
  }
}

function declarations(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".d.ts"))
    .sort()
}

function withPurpose(name, text) {
  const head = readFileSync(join(root, "src", name.replace(/\.d\.ts$/, ".ts")), "utf8").split("\n", 1)[0]
  const [, path, purpose] = head.match(/^\/\/ `([^`]+)`: (.+)$/)
  return `/**\n * ${purpose[0].toUpperCase()}${purpose.slice(1)}\n *\n * @module ${path}\n */\n${text}`
}

function withInterfaces(text) {
  return text.replaceAll(
    /^\/\*\* ([^\n]*) \*\/\n(export type \w+(?:<[^=]*>)? = (?:OptionsOf|ResolvedOf)<[^\n\]]*>)(?=;)/gm,
    "/** $1 @interface */\n$2",
  )
}
