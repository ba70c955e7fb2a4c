import { architectures, families, formOf } from "../model-files/families.ts"
import type { Family } from "../model-files/family.ts"
import type { ModelConfig } from "../model-files/model-config.ts"
import { fieldList, misfitOf } from "../model-files/model-fields.ts"
import { checkArguments } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { checkWhole, leastPositions } from "./check-arguments.ts"

const keys = Object.fromEntries(fieldList.map(([name]) => [name, true as const]))

/** Checks a configuration written in code; `parseModelConfig` checks those of files. Throws `BAD_ARGUMENT`. */
export function checkModelConfig(config: ModelConfig): void {
  checkArguments("The model's configuration", config, keys)
  const { architecture } = config
  if (!Object.hasOwn(families, architecture))
    throw bad(`architecture is ${String(architecture)}; it must be one of ${architectures.join(", ")}`)
  const { defaults, localRopeTheta }: Family = families[architecture]
  const form: Partial<ModelConfig> = formOf(config)
  for (const [name, field] of fieldList) {
    const value = config[name]
    if (field.kind === "size") checkWhole(value as number, name)
    else if (field.kind === "positive" && field.optional && !(name in defaults)) {
      if (value !== undefined) throw bad(`${name} is ${value}; ${architecture} models have none`)
    } else if (field.kind === "positive") checkPositive(value as number, name)
    else if (field.kind === "form" && value !== form[name])
      throw bad(`${name} is ${value}; in a ${architecture} model it must be ${form[name] ?? "left out"}`)
  }
  if (config.maxPositions < leastPositions)
    throw bad("maxPositions is 1; it must be at least 2, for one token of the prompt and one of the completion")
  checkPositive(config.ropeTheta, "ropeTheta")
  checkLayers(config, localRopeTheta === undefined ? 0 : 1)
  const misfit = misfitOf(config, (name) => name)
  if (misfit !== undefined) throw bad(misfit)
}

/** Checks rotary tables, and the table of the layers, which names them. */
function checkLayers(config: ModelConfig, tables: number): void {
  const { architecture, layerTable, layers, otherRotary = [] } = config
  if (layerTable && layerTable.length !== layers)
    throw bad(`layerTable has ${layerTable.length} entries, but there are ${layers} layers`)
  const known = otherRotary.length > 0 ? `are the tables 0 to ${otherRotary.length}` : "is the table 0"
  for (const { window, rope } of layerTable ?? []) {
    if (!Number.isSafeInteger(window) || window < 0)
      throw bad(`A window of layerTable is ${window}; it must be a whole number, 0 for none`)
    if (rope !== "none" && !(Number.isSafeInteger(rope) && rope >= 0 && rope <= otherRotary.length))
      throw bad(`A rope of layerTable is ${rope}; there ${known}, or "none"`)
  }
  if (otherRotary.length !== tables)
    throw bad(`otherRotary has ${otherRotary.length} entries; in a ${architecture} model it must have ${tables}`)
  for (const { ropeTheta, ropeScaling } of otherRotary)
    if (!(ropeTheta > 0 && Number.isFinite(ropeTheta)) || ropeScaling)
      throw bad("An entry of otherRotary must have a positive ropeTheta, and no ropeScaling")
}

function checkPositive(value: number, name: string): void {
  if (!(value > 0 && Number.isFinite(value))) throw bad(`${name} is ${value}; it must be positive`)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
