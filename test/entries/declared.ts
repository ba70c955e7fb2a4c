import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { folder } from "./entries.ts"

/** One name that an entry point exports. */
export interface Exported {
  readonly name: string
  /** Name in the file that declares it; "*" for a whole module. */
  readonly local: string
  readonly isType: boolean
  /** Path of the file that declares it. */
  readonly file: string
}

/** Names that an entry point exports, read from its text: it holds nothing but `export … from` statements. */
export function exportsOf(entry: string): Exported[] {
  return exportsIn(join(folder, `${entry}.ts`))
}

function exportsIn(path: string): Exported[] {
  const text = readFileSync(path, "utf8")
  const fileOf = (from: string) => join(dirname(path), from)
  const lists = [...text.matchAll(/^export (type )?\{([^}]*)\} from "([^"]+)"/gm)].flatMap(([, type, names, from]) =>
    names!
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== "")
      .map((one) => {
        const [local, name = local] = one.replace(/^type /, "").split(" as ")
        return {
          name: name!,
          local: local!,
          isType: type !== undefined || one.startsWith("type "),
          file: fileOf(from!),
        }
      }),
  )
  const modules = [...text.matchAll(/^export \* as (\w+) from "([^"]+)"/gm)].map(([, name, from]) => ({
    name: name!,
    local: "*",
    isType: false,
    file: fileOf(from!),
  }))
  const all = [...text.matchAll(/^export \* from "([^"]+)"/gm)].flatMap(([, from]) => exportsIn(fileOf(from!)))
  return [...lists, ...modules, ...all]
}

/** Doc comment directly above the declaration of a name; undefined without one. Follows re-exports. */
export function docOf({ local, file }: Exported): string | undefined {
  const text = readFileSync(file, "utf8")
  if (local === "*") return text.match(/^\/\/ (.+)$/m)?.[1]
  const declared = new RegExp(
    `(?<doc>/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)?export (?:declare |abstract |async )*(?:function\\*?|const|class|interface|type) ${local}\\b`,
  )
  const found = text.match(declared)
  if (found) return found.groups?.doc
  const passed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}(?: from "([^"]+)")?/gm)].find(([, names]) =>
    names!.split(",").some(
      (one) =>
        one
          .trim()
          .split(" as ")
          .at(-1)!
          .replace(/^type /, "") === local,
    ),
  )
  if (!passed) throw new Error(`${file} does not declare ${local}.`)
  const origin = passed[1]!
    .split(",")
    .map((one) => one.trim().replace(/^type /, ""))
    .find((one) => one.split(" as ").at(-1) === local)!
    .split(" as ")[0]!
  const from =
    passed[2] ?? text.match(new RegExp(`^import (?:type )?\\{[^}]*\\b${origin}\\b[^}]*\\} from "([^"]+)"`, "m"))?.[1]
  if (from === undefined) throw new Error(`${file} does not say where ${origin} is from.`)
  return docOf({ name: local, local: origin, isType: false, file: join(dirname(file), from) })
}
