import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { configKeys } from "../../src/cli/config/keys.ts"

const source = (path: string) => readFileSync(join(import.meta.dirname, "../../src", path), "utf8")

/** The comment of every field of an interface, its nested ones too; a field without one has "". */
function fieldComments(file: string, name: string): Map<string, string> {
  const text = source(file)
  const start = text.search(new RegExp(`export interface ${name}\\b`))
  if (start < 0) throw new Error(`${file} has no interface ${name}`)
  const body = text.slice(start, text.indexOf("\n}", start))
  const fields = body.matchAll(/(?:\/\*\*((?:(?!\*\/).)*)\*\/\s*)?readonly (\w+)\??:/gs)
  return new Map([...fields].map(([, comment = "", field]) => [field!, plain(comment)]))
}

function plain(comment: string): string {
  return comment
    .replace(/^\s*\*/gm, " ")
    .replace(/\s+/g, " ")
    .trim()
}

/** Where the comments of a group of keys stand. */
const sources: Readonly<Record<string, readonly (readonly [file: string, name: string])[]>> = {
  "": [
    ["cli/config/config.ts", "Config"],
    ["engine/native/options.ts", "NativePolicyOptions"],
  ],
  lora: [["engine/native/options.ts", "LoraOptions"]],
  training: [["training/options.ts", "TrainOptions"]],
  "training.rollout": [["training/options.ts", "RolloutOptions"]],
  "training.estimator": [
    ["credit/types.ts", "GrpoOptions"],
    ["credit/types.ts", "GigpoOptions"],
  ],
  "training.loss": [["engine/engine.ts", "PolicyLossOptions"]],
  "training.optimizer": [["training/options.ts", "OptimizerOptions"]],
  "training.evaluation": [
    ["training/options.ts", "TrainOptions"],
    ["training/options.ts", "EvaluationOptions"],
  ],
  clone: [["training/options.ts", "CloneOptions"]],
  "clone.optimizer": [["training/options.ts", "OptimizerOptions"]],
  initialize: [["training/initialize.ts", "InitializeOptions"]],
}

/** Keys that belong to the file alone. */
const own = ["gigpo", "environment.name", "training.estimator.name"]

const keys = configKeys.filter((key) => !key.group && !own.includes(key.path.join(".")))

describe("the configuration's keys", () => {
  it.each(keys.map((key) => [key.path.join("."), key] as const))(
    "describe %s as the option's comment does",
    (_, key) => {
      const group = key.path.slice(0, -1).join(".")
      const comments = new Map(sources[group]!.flatMap(([file, name]) => [...fieldComments(file, name)]))
      expect(key.description).toBe(comments.get(key.path.at(-1)!))
    },
  )

  it.each(keys.map((key) => [key.path.join("."), key] as const))(
    "have the default that %s is said to have",
    (_, key) => {
      if (key.default === undefined) return
      const said = /Default ("[^"]*"|[^\s,;]+)/.exec(key.description)?.[1]?.replace(/\.$/, "")
      expect(String(key.default)).toBe(String(Number.isNaN(Number(said)) ? said?.replaceAll('"', "") : Number(said)))
    },
  )

  it("are all of every option", () => {
    for (const [group, files] of Object.entries(sources)) {
      const known = configKeys.filter((key) => key.path.slice(0, -1).join(".") === group).map((key) => key.path.at(-1))
      for (const [file, name] of files) {
        if (group === "training.evaluation" && name === "TrainOptions") continue
        const fields = [...fieldComments(file, name).keys()]
        // The seed stands once, at the top; `every` stands below `evaluation` and `name` below `environment`. Whether there is
        // a reference follows from the loss.
        const elsewhere = group === "" ? ["name", "reference"] : ["seed", "every"]
        expect(known).toEqual(expect.arrayContaining(fields.filter((field) => !elsewhere.includes(field))))
      }
    }
  })
})
