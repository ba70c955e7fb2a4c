import { isDeepStrictEqual } from "node:util"
import { isObject } from "../options/read.ts"
import type { EvaluationHeader } from "./evaluation-file.ts"

/** Difference between two evaluations other than the model. */
export interface EvaluationDifference {
  /** Name: "prompt", "repeats", "seed", or a setting such as "temperature". */
  readonly name: string
  /** Value in the first evaluation; undefined where not set. */
  readonly first: unknown
  /** Value in the second evaluation; undefined where not set. */
  readonly second: unknown
}

/** Returns the differences between two evaluations of one benchmark, except for the model and the version of gigpo. */
export function differences(a: EvaluationHeader, b: EvaluationHeader): EvaluationDifference[] {
  const [first, second] = [comparedSettings(a), comparedSettings(b)]
  const names = new Set([...first.keys(), ...second.keys()])
  return [...names]
    .map((name) => ({ name, first: first.get(name), second: second.get(name) }))
    .filter((one) => !isDeepStrictEqual(one.first, one.second))
}

function comparedSettings({ digests, repeats, seed, settings }: EvaluationHeader): Map<string, unknown> {
  return new Map([["prompt", digests.prompt], ["repeats", repeats], ["seed", seed], ...leaves(settings)])
}

/** Settings with their paths, such as ["environment.history", 2]. */
function leaves(settings: object, above = ""): [path: string, value: unknown][] {
  return Object.entries(settings).flatMap(([key, value]) =>
    isObject(value) ? leaves(value, `${above}${key}.`) : [[`${above}${key}`, value]],
  )
}
