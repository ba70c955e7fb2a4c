import type { AdapterConfig } from "./adapter-config.ts"
import { pythonPattern, TimedPatterns } from "./python-pattern.ts"

// Which modules PEFT's keys mean. Its rules: tuners_utils.check_target_module_exists, other.get_pattern_key, other._set_trainable.

/** Says what is wrong with a key of the configuration, as PEFT spells it. */
export type Fail = (what: string) => Error

/** Chooses modules that have a pair, by their full names ("model.layers.0.self_attn.q_proj"). */
export function targetsOf(config: AdapterConfig, isLinear: (name: string) => boolean, fail: Fail) {
  const { targetModules, excludeModules, layersToTransform, modulesToSave = [] } = config
  const excluded = nameTest(excludeModules ?? [], "exclude_modules", fail)
  const savedNames = modulesToSave.map((name) => `(^|.*\\.)${name}($|\\..*)`)
  const saved = compile(savedNames, "modules_to_save", fail)
  const chosen = targetModules === undefined ? isLinear : nameTest(targetModules, "target_modules", fail)
  const layer = layerOf(config, fail)
  return (name: string): boolean => {
    if (excluded(name) || saved.first(name) || !chosen(name)) return false
    if (!layersToTransform || (Array.isArray(targetModules) && targetModules.includes(name))) return true
    const found = layer(name)
    return found !== undefined && layersToTransform.includes(found)
  }
}

/** A list of names and their ends, or a regular expression of the whole name. */
function nameTest(given: readonly string[] | string, key: string, fail: Fail): (name: string) => boolean {
  if (typeof given !== "string") return (name) => given.some((end) => name === end || name.endsWith(`.${end}`))
  const whole = compile([`(?:${given})$`], key, fail)
  return (name) => whole.first(name) !== undefined
}

function layerOf({ layersPattern }: AdapterConfig, fail: Fail): (name: string) => number | undefined {
  const patterns = layersPattern
    ? layersPattern.map((one) => `(?:^|.*?\\.)${one}\\.(?<idx>\\d+)\\.`)
    : [".*?\\.[^.]*\\.(?<idx>\\d+)\\."]
  const compiled = compile(patterns, "layers_pattern", fail)
  return (name) => {
    const [, found] = compiled.first(name) ?? []
    return found && Number(found.groups!.idx)
  }
}

/** The value of the first key that a name ends as. */
export function patternOf(
  values: Readonly<Record<string, number>> | undefined,
  key: string,
  fail: Fail,
): (name: string) => number | undefined {
  const patterns = Object.keys(values ?? {}).map((pattern) => `(?:.*\\.)?(?:${pattern})$`)
  const compiled = compile(patterns, key, fail)
  const found = Object.values(values ?? {})
  // A name that is a key itself counts too, whatever the key means as an expression.
  return (name) =>
    found[compiled.first(name)?.[0] ?? -1] ?? (values && Object.hasOwn(values, name) ? values[name] : undefined)
}

function compile(sources: readonly string[], key: string, fail: Fail): TimedPatterns {
  const expressions = sources.map((source) => {
    const expression = pythonPattern(`^(?:${source})`)
    if (expression) return { expression, isQuick: isQuick(source) }
    throw fail(
      `${key} holds a regular expression that cannot be read here; write it without flags and possessive parts`,
    )
  })
  const tooSlow = () =>
    fail(`${key} holds a regular expression that takes too long; write it without nested repetitions`)
  return new TimedPatterns(expressions, tooSlow)
}

/** Whether an expression repeats no group and so little else that a search in the name of a module is short, as usual ones are. */
function isQuick(source: string): boolean {
  const plain = source
    .replace(/\(\?(?:[:=!]|<[=!]|P?<\w+>)/g, "(")
    .replaceAll("(.*\\.)?", "")
    .replaceAll("(^|.*\\.)", "")
  return !/\)[*+{]/.test(plain) && (plain.match(/[*+?{]/g) ?? []).length <= 4
}
