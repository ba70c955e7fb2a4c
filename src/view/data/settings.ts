import type { RunInfo } from "./source.ts"

export interface Setting {
  readonly key: string
  /** [runs] Undefined if a run has no value. */
  readonly values: readonly (RunInfo["settings"][string] | undefined)[]
  readonly differs: boolean
}

/**
 * Value of an option of the training. Its key has a prefix in runs of the command line ("training.") and where the configuration does not
 * state it ("resolved.").
 */
export function trainingOption(
  { settings }: Pick<RunInfo, "settings">,
  option: string,
): RunInfo["settings"][string] | undefined {
  const key = ["", "training.", "resolved.", "resolved.training."].map((prefix) => prefix + option)
  const stated = key.find((one) => Object.hasOwn(settings, one))
  return stated === undefined ? undefined : settings[stated]
}

/** Settings of all runs, those that differ first, otherwise in the order of the configurations. */
export function settingsOf(runs: readonly Pick<RunInfo, "settings">[]): readonly Setting[] {
  const keys = [...new Set(runs.flatMap(({ settings }) => Object.keys(settings)))]
  const all = keys.map((key): Setting => {
    const values = runs.map(({ settings }) => (Object.hasOwn(settings, key) ? settings[key] : undefined))
    return { key, values, differs: values.some((value) => !Object.is(value, values[0])) }
  })
  return [...all.filter(({ differs }) => differs), ...all.filter(({ differs }) => !differs)]
}
