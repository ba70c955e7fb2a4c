import { likelihood } from "../generate/things.ts"
import type { Goal } from "./goal.ts"
import { inOrder } from "./home.ts"
import { type Memory, places } from "./memory.ts"
import { shortestFetch, shortestScript } from "./script.ts"

/** Command of the expert. */
export interface Advice {
  readonly command: string
  /** Kind of object that is searched for. */
  readonly sought?: string
}

/** Next command from past observations only: uses known objects, otherwise searches for missing ones. */
export function explore(memory: Memory, goal: Goal): Advice | undefined {
  const whole = shortestScript(memory, goal)
  if (whole) return whole.length > 0 ? { command: whole[0]! } : undefined
  const part = partOf(memory, goal)
  if (part?.length) return { command: part[0]! }
  const hasObject = [...memory.things.values()].some(({ kind }) => kind === goal.object)
  const sought = goal.taskType === "look_at_obj_in_light" && hasObject ? goal.target : goal.object
  const command = search(memory, sought)
  return command === undefined ? undefined : { command, sought }
}

/** Script for the part of the goal whose objects are known. */
function partOf(memory: Memory, goal: Goal): readonly string[] | undefined {
  if (goal.taskType === "look_at_obj_in_light") return shortestFetch(memory, goal.object)
  return goal.count === 2 ? shortestScript(memory, { ...goal, count: 1 }) : undefined
}

/** Command towards the unseen receptacle with the highest likelihood per command. */
function search({ receptacles, seen, here }: Memory, kind: string): string | undefined {
  const names = inOrder(receptacles.keys())
  const likely = places.get(kind) ?? []
  const value = (name: string): number => {
    const { kind, closed } = receptacles.get(name)!
    const rank = likely.indexOf(kind)
    const same = names.filter((other) => receptacles.get(other)!.kind === kind).length
    return (rank < 0 ? 0.01 : likelihood(rank)) / same / (closed ? 2 : 1)
  }
  const next = names
    .filter((name) => !seen.has(name))
    .map((name) => ({ name, value: value(name) }))
    .sort((a, b) => b.value - a.value)[0]?.name
  if (next === undefined) return undefined
  const { place, closed } = receptacles.get(next)!
  if (place !== here) return `go to ${next}`
  return closed ? `open ${next}` : `examine ${next}`
}
