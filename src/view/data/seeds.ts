import type { RunInfo } from "./source.ts"

/** Runs that differ only in their seeds. */
export interface SeedGroup<Run extends Pick<RunInfo, "settings"> = RunInfo> {
  readonly runs: readonly Run[]
  /** Settings by which the group differs from the other groups, "omega = 1, lr = 1e-6"; empty if there are no others. */
  readonly label: string
}

/** Settings that differ between seeds: the seed, and where a run is. */
const ofRun = /(^|\.)(seed|run|out|output|directory|name|promptDate)$/
/** Maximum number of settings in a label. */
const most = 4

/** Groups runs by their settings without seeds, in the order of first occurrence. */
export function seedGroups<Run extends Pick<RunInfo, "settings">>(runs: readonly Run[]): SeedGroup<Run>[] {
  const groups = new Map<string, Run[]>()
  for (const run of runs) {
    const key = JSON.stringify(
      Object.entries(run.settings)
        .filter(([name]) => !ofRun.test(name))
        .sort(),
    )
    groups.set(key, [...(groups.get(key) ?? []), run])
  }
  const all = [...groups.values()]
  const names = [...new Set(runs.flatMap(({ settings }) => Object.keys(settings)))].filter((name) => !ofRun.test(name))
  const differing = names.filter((name) => new Set(all.map(([run]) => run!.settings[name])).size > 1)
  return all.map((own) => {
    const words = differing
      .slice(0, most)
      .map((name) => `${name.split(".").at(-1)} = ${own[0]!.settings[name] ?? "not set"}`)
    return { runs: own, label: [...words, ...(differing.length > most ? ["…"] : [])].join(", ") }
  })
}

/** Mean with the half width of its 95 % confidence interval (Student's t); the width is undefined for a single value. */
export function meanInterval(
  values: readonly number[],
): { readonly mean: number; readonly half: number | undefined } | undefined {
  const count = values.length
  if (count === 0) return undefined
  const mean = values.reduce((sum, value) => sum + value, 0) / count
  if (count === 1) return { mean, half: undefined }
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1)
  return { mean, half: studentQuantile(count - 1) * Math.sqrt(variance / count) }
}

/** 97.5 % quantiles of Student's t distribution with 1 to 10 degrees of freedom. */
const quantiles = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]

/** 97.5 % quantile; for more than 10 degrees of freedom by the first terms of its expansion at the normal quantile (error below 0.001). */
function studentQuantile(freedom: number): number {
  const known = quantiles[freedom - 1]
  if (known !== undefined) return known
  const z = 1.959964
  const terms = [
    (z ** 3 + z) / 4,
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
  ]
  return terms.reduce((sum, term, at) => sum + term / freedom ** (at + 1), z)
}

/** Whether a run matches all words of a search: a part of its name, or of "key = value"; `omega=1` matches a value exactly. */
export function matchesSearch({ name, settings }: Pick<RunInfo, "name" | "settings">, search: string): boolean {
  const pairs = Object.entries(settings).map(
    ([key, value]) => [key.toLowerCase(), String(value).toLowerCase()] as const,
  )
  return search
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .every((word) => {
      const [key, wanted] = word.split("=", 2) as [string, string?]
      if (wanted !== undefined) return pairs.some(([own, value]) => own.includes(key) && value === wanted)
      return (
        name.toLowerCase().includes(word) || pairs.some(([own, value]) => own.includes(word) || value.includes(word))
      )
    })
}
