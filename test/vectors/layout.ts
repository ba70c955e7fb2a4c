import type { Fixture } from "./fixture.ts"
import { find, lookUp, type Vector } from "./topic.ts"

// The layouts that files of vectors have, brought to one: `{ params, inputs, expected }`, and the steps that it is about.

type Fields = Readonly<Record<string, unknown>>

/**
 * The vectors of one entry of a file, each with where it stands: the entry itself, those of a list or of its `cases`, or, where what is
 * expected and the inputs have the same parts, one a part. What stands beside `inputs` is one of them; a parameter that is not among
 * `params` is sought in `inputs`, and the other way round.
 *
 * @throws Error for what is no vector
 */
export function vectorsOf(key: string, given: unknown, fixture?: Fixture): (readonly [string, Vector])[] {
  if (Array.isArray(given)) return given.flatMap((one, at) => vectorsOf(`${key}[${at}]`, one, fixture))
  if (!isFields(given)) throw new Error("it is no vector: neither { params, inputs, expected } nor a list of such")
  const { cases, params = {}, inputs = {}, expected, uses: _, note: __, ...beside } = given
  if (Array.isArray(cases)) return vectorsOf(key, spread({ ...beside, params, inputs }, cases, expected), fixture)
  if (!isFields(params)) throw new Error("its params are no object")
  const listed = Array.isArray(inputs) && Array.isArray(expected) && inputs.length === expected.length
  if (listed) return vectorsOf(key, spread({ ...beside, params, inputs: {} }, inputs, expected), fixture)
  if (!isFields(inputs)) throw new Error("its inputs are no object")
  if (expected === undefined || expected === null) throw new Error("it has no expected")
  const all = { ...beside, ...inputs }
  const parts = isFields(expected) ? Object.keys(expected) : []
  if (parts.length > 0 && parts.every((part) => isFields(all[part])))
    return parts.flatMap((part) => {
      const own = { params, inputs: { ...all, ...(all[part] as Fields) }, expected: (expected as Fields)[part] }
      return vectorsOf(`${key} ${part}`, own, fixture)
    })
  const scalars = pick(all, (one) => !Array.isArray(one))
  const vector = { params: behind(params, scalars), inputs: behind(all, params), expected: expected as Fields }
  return [[key, { ...vector, fixture: ownSteps(all, fixture) ?? fixture }]]
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/** One entry for each of some cases: inputs or whole vectors, with what is expected of it beside it or in a list of its own. */
function spread(
  common: Fields & { readonly inputs: unknown },
  cases: readonly unknown[],
  expected: unknown,
): unknown[] {
  return cases.map((one, at) => {
    if (!isFields(one)) return one
    const { inputs, expected: own, params, ...beside } = one
    const wanted = own ?? (Array.isArray(expected) ? expected[at] : undefined)
    const joint = { ...common, ...beside, inputs: { ...(common.inputs as Fields), ...(inputs as Fields) } }
    return { ...joint, ...(isFields(params) && { params }), expected: wanted }
  })
}

function pick(from: Fields, isWanted: (value: unknown) => boolean): Fields {
  return Object.fromEntries(Object.entries(from).filter(([, value]) => isWanted(value)))
}

/** Fields that are found where the own ones have none of the names that are sought. */
function behind(own: Fields, others: Fields): Fields {
  return Object.assign(Object.create({ ...others }), own)
}

/** Steps that a vector has of its own: records, or episodes by their states and rewards. */
function ownSteps(inputs: Fields, fixture: Fixture | undefined): Fixture | undefined {
  const gamma = find<number>(inputs, ["gamma"], fixture?.gamma ?? Number.NaN)
  const records = find<unknown>(inputs, ["steps", "records"], [])
  if (isRecords(records) && records.every((one) => lookUp(one, "state") !== undefined))
    return {
      gamma,
      steps: numbered(records.map((one) => stepOf(one, find(one, ["traj", "trajectory", "episode"], "t0")))),
    }
  const episodes = Object.entries(find<object>(inputs, ["trajectories", "trajs", "episodes", "rollouts"], {}))
  if (episodes.length === 0 || !isRecords(episodes.map(([, one]) => one))) return undefined
  const steps = episodes.flatMap(([name, episode]) => {
    const rewards = find<readonly number[]>(episode, ["rewards", "reward", "r"])
    const states = find<readonly string[]>(episode, ["states", "anchors", "state"])
    const traj = find<string>(episode, ["traj", "id", "name"], name)
    return rewards.map((reward, at) =>
      stepOf({ ...episode, reward, state: states[at]!, next_state: states[at + 1] ?? lookUp(episode, "final") }, traj),
    )
  })
  return { gamma, steps: numbered(steps) }
}

function isRecords(value: unknown): value is readonly Fields[] {
  return Array.isArray(value) && value.length > 0 && value.every(isFields)
}

type Step = Fixture["steps"][number]

function stepOf(from: Fields, traj: string): Omit<Step, "turn"> {
  const next = find<string>(from, ["next_state", "nextAnchor", "next_obs"], "")
  const prompt = String(find(from, ["prompt", "uid", "task"], "p0"))
  const base = { prompt, traj: String(traj), state: String(find(from, ["state", "anchor", "obs"])) }
  return { ...base, reward: find(from, ["reward", "r"], 0), ...(next !== "" && { next }) }
}

/** Steps are in the order of time. */
function numbered(steps: readonly Omit<Step, "turn">[]): Step[] {
  const seen = new Map<string, number>()
  return steps.map((step) => {
    const turn = seen.get(step.traj) ?? 0
    seen.set(step.traj, turn + 1)
    return { ...step, turn }
  })
}
