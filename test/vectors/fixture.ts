import { estimate } from "../../src/credit/as-estimator.ts"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import type { Batch, Credit, Estimator } from "../../src/credit/estimator.ts"
import { outsideRuns } from "../../src/credit/options.ts"
import { Random } from "../../src/util/random.ts"
import { notes, type Results, type Vector } from "./topic.ts"

// Files of vectors whose topics share steps: `fixture` stands beside the topics, `expected` may hold several configurations.

/** Steps of a few episodes, in time order; topics that say `uses` give columns in their order. */
export interface Fixture {
  readonly gamma: number
  readonly steps: readonly {
    readonly prompt: string
    readonly traj: string
    readonly turn: number
    readonly state: string
    readonly reward: number
    /** Next state, if known. */
    readonly next?: string
  }[]
}

/** The fixture's steps, each with what its column gives; a list of keys in place of numbers is a column of anything. */
export function stepsOf({ fixture }: Vector, more: (row: number) => Partial<BatchStep> = () => ({})): BatchStep[] {
  if (fixture === undefined) throw new Error("its file has no fixture")
  return fixture.steps.map(({ prompt, traj, state, reward }, row) => {
    const step = { task: prompt, episode: traj, anchor: state, reward, length: 1 }
    return { ...step, ...more(row) }
  })
}

export function creditOf(
  estimator: Estimator,
  steps: readonly BatchStep[],
  statistics?: Batch["statistics"],
): Promise<Credit> {
  return estimate(estimator, toBatch(steps, statistics), { progress: outsideRuns, random: new Random(0) })
}

/** A record that holds metrics and nothing else. */
export function measured(metrics: Readonly<Record<string, number>>): Pick<BatchStep, "record"> {
  return { record: { observation: { text: "", anchor: "" }, text: "", action: "", metrics } }
}

type Settings = Readonly<Record<string, unknown>>

/**
 * What is expected of one configuration, or of several by their names, which may lie within each other: `[]`, `{ A: [] }`, `{ "mean_norm":
 * [] }`, `{ "mean_norm/K=2": { A: [] } }`, `{ mean_norm: { "K=2": [] } }`.
 *
 * @param names of results, the first of them that of a list alone; what is expected under another name is a configuration
 * @param compute results by their names, of the parameters and a configuration's name: "mean_norm/K=2"
 */
export async function perConfiguration(
  { params = {}, expected }: Vector,
  names: readonly string[],
  compute: (name: string, params: Settings) => Promise<Results> | Results,
): Promise<Results | readonly unknown[]> {
  const visit = async (name: string, wanted: unknown, given: Settings): Promise<unknown> => {
    if (typeof wanted !== "object" || wanted === null || Array.isArray(wanted))
      return (await compute(name, given))[names[0]!]
    const own = { ...given, ...((wanted as Settings).params as Settings | undefined) }
    const keys = Object.keys(wanted)
    const plain = keys.some((key) => names.includes(key)) ? await compute(name, own) : {}
    const others = keys.filter((key) => !names.includes(key) && !notes.includes(key))
    const found = others.map(async (key) => [
      key,
      plain[key] ?? (await visit(name === "" ? key : `${name}/${key}`, (wanted as Settings)[key], own)),
    ])
    return { ...plain, ...Object.fromEntries(await Promise.all(found)) }
  }
  return (await visit("", expected, params)) as Results
}
