import { describe, expect, it } from "vitest"
import type { AdapterConfig } from "../../src/model-files/adapter-config.ts"
import { patternOf, targetsOf } from "../../src/model-files/adapter-modules.ts"

const fail = (what: string) => new Error(what)
const names = Array.from({ length: 36 }, (_, layer) => `model.layers.${layer}.self_attn.q_proj`)

describe("an expression that takes exponential time is rejected by its key", () => {
  const slow = "(([a-z_0-9]|[a-z_0-9.])+)+#"
  const message = (key: string) => new RegExp(`${key} holds a regular expression that takes too long`)

  it.each<[string, object]>([
    ["target_modules", { targetModules: slow }],
    ["exclude_modules", { excludeModules: slow, targetModules: ["q_proj"] }],
    ["modules_to_save", { modulesToSave: [slow], targetModules: ["q_proj"] }],
    ["layers_pattern", { layersPattern: [slow], layersToTransform: [0], targetModules: ".*q_proj" }],
  ])("%s", (key, config) => {
    const chosen = targetsOf(config as never, () => true, fail)
    expect(() => names.map(chosen)).toThrow(message(key))
  })

  it("rank_pattern", () => {
    const rank = patternOf({ [slow]: 4 }, "rank_pattern", fail)
    expect(() => names.map(rank)).toThrow(message("rank_pattern"))
  })

  it("also where each name takes a while, and all together too long", () => {
    const chosen = targetsOf({ targetModules: "(([a-z_]+\\.?)+\\d?\\.?)+#" } as never, () => true, fail)
    expect(() => Array(10_000).fill(names).flat().map(chosen)).toThrow(message("target_modules"))
  })
})

it("the first key that fits counts, of thousands", () => {
  const many = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`none_${i}`, i]))
  const rank = patternOf({ ...many, q_proj: 7, "self_attn\\.q_proj": 8 }, "rank_pattern", fail)
  expect(names.map(rank)).toEqual(names.map(() => 7))
  expect(rank("model.layers.0.mlp.up_proj")).toBeUndefined()
})

const name = `model.layers.0.${"a".repeat(40)}.q_proj`
const endless = ["(a+)+$", "(.*a){20}x", "(?:a|aa)+c", "(\\w+\\.?)+x", `${"a?".repeat(40)}${"a".repeat(41)}`]

it.each(endless)("an adapter's expression that takes too long is rejected: %s", (source) => {
  const expressions = [
    () => targetsOf({ targetModules: `.*${source}` } as unknown as AdapterConfig, () => true, fail)(name),
    () => patternOf({ [source]: 8 }, "rank_pattern", fail)(name),
  ]
  for (const search of expressions) {
    try {
      expect(search()).not.toBe(true)
    } catch (error) {
      expect((error as Error).message).toMatch(/takes too long; write it without nested repetitions/)
    }
  }
})

it("common ones have the same meaning as in Python", () => {
  const targets = (targetModules: string | string[]) =>
    targetsOf({ targetModules } as unknown as AdapterConfig, () => true, fail)
  expect(targets(".*\\.(q|k|v)_proj")(name)).toBe(true)
  expect(targets(["q_proj"])(name)).toBe(true)
  expect(patternOf({ "layers.0.*q_proj": 8 }, "rank_pattern", fail)(name)).toBe(8)
})
