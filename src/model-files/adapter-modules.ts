import type { AdapterConfig } from "./adapter-config.ts"
import { pythonPattern, TimedPatterns } from "./python-pattern.ts"

// Selects the modules that PEFT's fields refer to. Rules in PEFT: tuners_utils.check_target_module_exists, other.get_pattern_key,
// other._set_trainable.

/** Creates the error for a field of the configuration, named as in PEFT. */
export type Fail = (what: string) => Error

/** Returns a test whether a module has LoRA matrices, by its full name ("model.layers.0.self_attn.q_proj"). */
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

/** Returns a test for a list of names or their last parts, or for a regular expression of the full name. */
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

/** Returns a function that finds the value of the first key, a regular expression, that matches the end of a name. */
export function patternOf(
  values: Readonly<Record<string, number>> | undefined,
  key: string,
  fail: Fail,
): (name: string) => number | undefined {
  const patterns = Object.keys(values ?? {}).map((pattern) => `(?:.*\\.)?(?:${pattern})$`)
  const compiled = compile(patterns, key, fail)
  const found = Object.values(values ?? {})
  // PEFT also accepts a key that equals the name, even if it does not match as an expression.
  return (name) =>
    found[compiled.first(name)?.[0] ?? -1] ?? (values && Object.hasOwn(values, name) ? values[name] : undefined)
}

function compile(sources: readonly string[], key: string, fail: Fail): TimedPatterns {
  const expressions = sources.map((source) => {
    const expression = pythonPattern(`^(?:${source})`)
    if (expression) return { expression, isQuick: isQuick(source) }
    throw fail(
      `${key} holds a regular expression that is not supported; write it without flags and possessive quantifiers`,
    )
  })
  const tooSlow = () =>
    fail(`${key} holds a regular expression that takes too long; write it without nested repetitions`)
  return new TimedPatterns(expressions, tooSlow)
}

/** Whether an expression repeats no group and has at most 4 quantifiers, so that a search in a module name is fast. */
function isQuick(source: string): boolean {
  const plain = source
    .replace(/\(\?(?:[:=!]|<[=!]|P?<\w+>)/g, "(")
    .replaceAll("(.*\\.)?", "")
    .replaceAll("(^|.*\\.)", "")
  return !/\)[*+{]/.test(plain) && (plain.match(/[*+?{]/g) ?? []).length <= 4
}
