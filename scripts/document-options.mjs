// Writes the help of options and their defaults as comments into the declarations, so that editors show them as tooltips. The help is a text in
// the tables that declare the options. Where the compiler has written it as a type argument (`OptionField<number, "Tasks (groups) per iteration.">`),
// it is moved to the comment.
//
//   node scripts/document-options.mjs   # after tsc, on dist/ and modules/
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { optionsIn } from "./declared-options.mjs"

const [dist, modules] = ["dist", "modules"].map((name) => fileURLToPath(new URL(`../${name}`, import.meta.url)))
const files = readdirSync(dist, { recursive: true })
  .filter((name) => name.endsWith(".d.ts") && !/^cli\b/.test(name)) // the command line is not an API
  .map((name) => join(dist, name))
let count = 0
for (const file of files) await document(file)
console.log(`${count} options are documented.`)

async function document(file) {
  const text = readFileSync(file, "utf8")
  const options = optionsIn(text)
  if (options.length === 0) return
  const module = await import(pathToFileURL(join(modules, relative(dist, file).replace(/\.d\.ts$/, ".js"))))
  const edits = []
  const lines = []
  for (const { path, line, indent, literal } of options) {
    const own = literal && JSON.parse(text.slice(literal.from, literal.to))
    const entry = entryAt(module, path, own)
    const help = own ?? entry?.help
    if (help) {
      const sentence = [help, entry && defaultOf(entry)].filter(Boolean).join(" ").replaceAll("*/", "*\\/")
      edits.push({ from: line, to: line, put: `${indent}/** ${sentence} */\n` })
      lines.push(text.slice(0, line).split("\n").length - 1)
    }
    if (literal) edits.push({ ...literal, put: "string" })
  }
  edits.sort((a, b) => a.from - b.from)
  let [result, at] = ["", 0]
  for (const { from, to, put } of edits) {
    result += text.slice(at, from) + put
    at = to
  }
  writeFileSync(file, result + text.slice(at))
  shiftMap(`${file}.map`, lines)
  count += lines.length
}

/** Adds an empty entry to the source map for each inserted line. */
function shiftMap(file, lines) {
  if (!existsSync(file)) return
  const map = JSON.parse(readFileSync(file, "utf8"))
  const inserted = new Set(lines)
  map.mappings = map.mappings
    .split(";")
    .flatMap((entry, line) => (inserted.has(line) ? ["", entry] : entry))
    .join(";")
  writeFileSync(file, JSON.stringify(map))
}

/** Option at a path of a module's exports; undefined if there is none, or if its help differs. */
function entryAt(module, path, help) {
  let entry = module
  for (const key of path)
    entry =
      entry?.[key] ?? entry?.fields?.[key] ?? entry?.variants?.[key] ?? entry?.common?.[key] ?? entry?.objectForm?.[key]
  return typeof entry?.help === "string" && (help ?? entry.help) === entry.help ? entry : undefined
}

function defaultOf({ required, default: fallback, defaultText }) {
  if (required) return "Required."
  if (fallback === undefined) return defaultText && `Default: ${defaultText}.`
  return typeof fallback === "function" ? undefined : `Default: ${written(fallback)}.`
}

function written(value) {
  return typeof value === "number" ? String(value) : JSON.stringify(value)
}
