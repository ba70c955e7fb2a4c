import type { LayerKind } from "../native/model.ts"
import { GigpoError } from "../util/errors.ts"
import type { ConfigFields, ConfigJson } from "./config-fields.ts"
import { families } from "./families.ts"
import type { Family } from "./family.ts"
import type { ModelConfig } from "./model-config.ts"

/**
 * Reads which layers have a sliding window, and which are not rotated. Undefined where none differs from the usual. Fields that transformers
 * would contradict itself with are rejected.
 */
export function parseLayerTable(
  fields: ConfigFields,
  { layers: own, localRopeTheta }: Family,
  layers: number,
): readonly LayerKind[] | undefined {
  const { json, fail } = fields
  if (!own.rotated && (json.no_rope_layers ?? undefined) !== undefined)
    throw fail("no_rope_layers is an object or a list, which changes what the model computes and is not supported")
  const rotated = own.rotated?.(fields, layers)
  const local = localRopeTheta === undefined ? 0 : 1
  const table = own
    .windows(fields, layers)
    .map((window, i): LayerKind => ({ window, rope: rotated?.[i] === false ? "none" : window > 0 ? local : 0 }))
  return table.every(({ window, rope }) => window === 0 && rope === 0) ? undefined : table
}

/** The table of a model, with an entry for each layer. */
export function layerTable({
  layerTable: table,
  layers,
}: Pick<ModelConfig, "layerTable" | "layers">): readonly LayerKind[] {
  return table ?? Array<LayerKind>(layers).fill({ window: 0, rope: 0 })
}

/**
 * Returns a table as fields of config.json, in the words of its architecture.
 *
 * @throws GigpoError `BAD_ARGUMENT` if a handwritten table has no names there.
 */
export function layerTableJson(config: ModelConfig): ConfigJson {
  const { layers, localRopeTheta }: Family = families[config.architecture]
  const table = layerTable(config)
  const window = Math.max(...table.map((kind) => kind.window))
  const local = localRopeTheta === undefined ? 0 : 1
  const fits =
    table.every((kind) => kind.window === 0 || kind.window === window) &&
    (layers.rotated !== undefined || table.every((kind) => kind.rope === (kind.window > 0 ? local : 0)))
  const json = fits ? layers.write(table, window) : undefined
  if (!json)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `layerTable has layers that no ${config.architecture} model in Hugging Face's format has.`,
    )
  return json
}
