import { type Belief, isHolding } from "./belief.ts"
import type { HouseholdFacts } from "./household-facts.ts"

// Scores of beliefs, as in the authors' code of ReBel (arXiv 2605.20061).

/**
 * r_state: agreement of a belief with the facts, 0 to 1: places 35 %, states 25 %, visited 25 %, unvisited 15 %. What the facts do not know
 * is not counted against the belief. `lenient` for the first step, of which only the presence of each part counts.
 */
export function stateScore(belief: Belief, facts: HouseholdFacts, lenient: boolean): number {
  const { objects, states, visited, unvisited } = belief
  const isEmpty = (part: object) => Object.keys(part).length === 0
  const has = [!isEmpty(objects), !isEmpty(states), visited.length > 0, unvisited.length > 0]
  const parts = lenient
    ? has.map((given, at) => (given ? 0.6 : at === 0 ? 0.4 : 0.5))
    : [
        agreement(objects, facts.places, (own, known) => known.includes(own) || own.includes(known), facts.inventory),
        agreement(states, facts.states, (own, known) => own === known),
        visitedScore(new Set(visited), facts.visited),
        unvisitedScore(new Set(unvisited), facts),
      ]
  return parts.reduce((sum, part, at) => sum + part * [0.35, 0.25, 0.25, 0.15][at]!, 0)
}

/** 1 minus the share of known facts that a part of a belief contradicts or lacks. */
function agreement(
  part: Readonly<Record<string, string>>,
  known: ReadonlyMap<string, string>,
  agrees: (own: string, known: string) => boolean,
  inventory?: string,
): number {
  const own = Object.entries(part).map(([name, value]) => [name.toLowerCase(), value.toLowerCase()] as const)
  if (own.length === 0) return known.size > 0 ? 0 : 0.5
  if (known.size === 0) return 0.7
  const matches = (one: string, other: string) => one.includes(other) || other.includes(one)
  const wrong = own.filter(([name, value]) => {
    if (inventory !== undefined && value.includes("in_hand")) return !inventory.includes(name)
    const fact = [...known].find(([other]) => matches(name, other))
    return fact !== undefined && !agrees(value, fact[1])
  })
  const missed = [...known.keys()].filter((name) => !own.some(([other]) => matches(name, other)))
  return Math.max(0, 1 - (wrong.length + missed.length) / known.size)
}

/** F1 of the visited receptacles, minus 0.1 for each that was not visited. */
function visitedScore(own: ReadonlySet<string>, visited: ReadonlySet<string>): number {
  if (own.size === 0 || visited.size === 0) return own.size === visited.size ? 0.6 : 0.3
  const hits = [...own].filter((one) => visited.has(one)).length
  return Math.max(0, (2 * hits) / (own.size + visited.size) - 0.1 * (own.size - hits))
}

function unvisitedScore(own: ReadonlySet<string>, { visited, unvisited }: HouseholdFacts): number {
  if (own.size === 0) return unvisited.size === 0 ? 0.8 : 0.4
  return 1 - [...own].filter((one) => visited.has(one)).length / own.size
}

/**
 * Phase of a task that the admissible commands show: transform, place, pickup or find. The commands of this package's ALFWorld, take and
 * move, count as pick up and put.
 */
function phaseOf(commands: readonly string[], holding: boolean): string {
  const text = commands.join(" ").toLowerCase()
  if (/heat |cool |clean /.test(text)) return "transform"
  if (holding && /put |move /.test(text)) return "place"
  return /pick up|take /.test(text) ? "pickup" : "find"
}

/** Phase of a task for step groups, by the commands alone: place, transform, pickup or find. */
export function groupPhase(commands: readonly string[]): string {
  const text = commands.join(" ").toLowerCase()
  if (/put|move /.test(text)) return "place"
  if (/heat|cool|clean|slice/.test(text)) return "transform"
  return /pick up|take /.test(text) ? "pickup" : "find"
}

/** r_task: 1 if the belief names the phase of the task, else 0. After a success the phase is "done". */
export function taskScore(belief: Belief, commands: readonly string[], succeeded: boolean): number {
  return Number(belief.phase === (succeeded ? "done" : phaseOf(commands, isHolding(belief))))
}

const stopwords = new Set("that will find expect next observation then with from this".split(" "))
/** Words that many observations contain; they count in pairs only. */
const noise = new Set(
  (
    "closed open opened pick picked found clean cleaned heat heated cool cooled put place placed hold holding examine look move moved take " +
    "taken"
  ).split(" "),
)

/**
 * r_pred: share of the words and pairs of words after "I expect" that the next observation contains, 0 to 1.
 *
 * @param common - further words that count in pairs only
 */
export function predictionScore({ prediction }: Belief, observation: string, common: readonly string[] = []): number {
  const text = prediction.toLowerCase()
  const expected = /i expect\s+(.*)/.exec(text)?.[1] ?? text
  const words = (expected.match(/\b[a-z]\w+\b/g) ?? []).filter((word) => word.length > 3 && !stopwords.has(word))
  const features = words.flatMap((word, at) => [
    ...(noise.has(word) || common.includes(word) ? [] : [word]),
    ...(at + 1 < words.length ? [`${word} ${words[at + 1]}`] : []),
  ])
  const counted = features.length > 0 ? features : words
  const seen = observation.toLowerCase()
  return counted.length === 0 ? 0 : counted.filter((one) => seen.includes(one)).length / counted.length
}
