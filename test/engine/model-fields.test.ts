import { expect, it } from "vitest"
import { checkModelConfig } from "../../src/engine/check-model.ts"
import { resolvePolicyOptions } from "../../src/engine/native/options.ts"
import { settle } from "../../src/engine/native/started.ts"
import { architectures } from "../../src/model-files/families.ts"
import { type ModelConfig, parseModelConfig, readModelConfig } from "../../src/model-files/model-config.ts"
import { fieldList, modelFields } from "../../src/model-files/model-fields.ts"
import { tensorShapes } from "../../src/model-files/model-tensors.ts"
import { native } from "../../src/native/native.ts"
import * as publishedConfigs from "../model-files/published-configs.ts"
import { architectureKinds, architecturePath } from "./fixtures.ts"

const options = (config: ModelConfig) => resolvePolicyOptions({ device: "cpu" }, config)
const plan = (config: ModelConfig) => native().memoryPlan(config, options(config), Number.MAX_SAFE_INTEGER)

/** Returns a copy of a value whose objects add the path of every property that is read to `paths`; entries of lists share a path. */
function recording<T>(value: T, paths: Set<string>, path = ""): T {
  if (Array.isArray(value)) return value.map((entry) => recording(entry, paths, path)) as T
  if (typeof value !== "object" || value === null) return value
  return new Proxy(value, {
    get(target, name) {
      const inner = `${path}${String(name)}`
      paths.add(inner)
      return recording(Reflect.get(target, name), paths, `${inner}.`)
    },
  })
}

/** Paths of all properties of a value. */
function pathsOf(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((entry) => pathsOf(entry, path))
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [`${path}${name}`, ...pathsOf(inner, `${path}${name}.`)])
}

const yarn = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 32768 }
const { gemma3, qwen3 } = publishedConfigs
const published = [{ ...qwen3, rope_scaling: yarn }, ...Object.values(publishedConfigs)]

it("every architecture has a published configuration here", () => {
  const there = new Set(published.map((json) => parseModelConfig(json).architecture))
  expect([...there].sort()).toEqual([...architectures].sort())
})

it.each(published.map((json) => [parseModelConfig(json)] as const))(
  "native code reads the fields of $architecture",
  (config) => {
    const read = new Set<string>()
    plan(recording(config, read))
    // The names of the architectures are those of Hugging Face, and unknown to native code.
    const { architecture, ...given } = config
    for (const path of pathsOf(given)) expect(read).toContain(path)
    const known = [...fieldList.map(([name]) => name), ...published.flatMap((json) => pathsOf(parseModelConfig(json)))]
    // Entries of otherRotary have the fields of the model's own table.
    expect([...read].filter((path) => !known.includes(path.replace("otherRotary.", "")))).toEqual([])
    expect(read).not.toContain("architecture")
  },
)

it("native code reads every field of the table", () => {
  const read = new Set<string>()
  plan(recording(parseModelConfig(gemma3), read))
  const names = fieldList.map(([name]) => name).filter((name) => name !== "architecture")
  expect([...read].filter((path) => !path.includes(".")).sort()).toEqual(names.sort())
})

it.each(published.map((json) => [parseModelConfig(json)] as const))(
  "$architecture as published is accepted",
  (config) => {
    expect(() => checkModelConfig(config)).not.toThrow()
  },
)

/** Another value of a field that the architecture fixes. */
const other = (value: unknown) => (typeof value === "boolean" ? !value : value === undefined ? 2 : undefined)
const fixed = fieldList.filter(([, { kind }]) => kind === "form").map(([name]) => name)

it.each(
  published.flatMap((json) => {
    const config = parseModelConfig(json)
    return fixed.map((name) => [name, config.architecture, { ...config, [name]: other(config[name]) }] as const)
  }),
)(
  "another %s than that of %s is rejected: biases, norms, gate, factor of the embeddings",
  (name, architecture, wrong) => {
    const message = new RegExp(`^${name} is ${wrong[name]}; in a ${architecture} model it must be `)
    expect(() => checkModelConfig(wrong)).toThrow(message)
  },
)

it.each(Object.entries(modelFields).filter(([, field]) => "key" in field && !("optional" in field)))(
  "native code rejects a model without %s",
  (name) => {
    expect(() => plan({ ...parseModelConfig(qwen3), [name]: undefined })).toThrow(new RegExp(`^${name} must be `))
  },
)

it.each([...architectureKinds])("native code has the weights of tensorShapes for %s", async (name) => {
  const config = await readModelConfig(architecturePath(name))
  const engine = new (native().Engine)(config, options(config))
  await settle(() => engine.clearGradients())
  const parameters = engine.parameters.map(({ name, shape }) => [name, [...shape]])
  expect(Object.fromEntries(parameters)).toEqual(Object.fromEntries(tensorShapes(config)))
  await engine.dispose()
})
