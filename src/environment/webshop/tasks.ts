import { GigpoError } from "../../util/errors.ts"
import type { Random } from "../../util/random.ts"
import type { Goal, GoalTable } from "./goals.ts"

/** WebShop's number of test goals. Small catalogues hold out a fifth of their goals. */
const mostTestGoals = 500

/**
 * Goals of a split. The test has the first goals of WebShop's shuffled order; training draws endlessly from all others. No test goal occurs
 * in training, even if a catalogue gives the same text twice. (In verl-agent every worker shuffles separately, so test goals occur in
 * training.)
 */
export function* webshopTasks(
  split: "train" | "test",
  random: Random,
  goals: GoalTable,
): Generator<Goal, void, undefined> {
  const testGoals = testGoalCount(goals)
  if (split === "test") {
    for (let place = 0; place < testGoals; place++) yield goals.at(place)
    return
  }
  const heldOut = heldOutTexts(goals)
  const draws = random.derive("webshop goals")
  for (let misses = 0; misses < 1000; misses++) {
    const goal = goals.at(testGoals + draws.below(goals.size - testGoals))
    if (heldOut.has(goal.instruction)) continue
    misses = -1
    yield goal
  }
  throw new GigpoError(
    "BAD_DATA",
    "webshop: the training goals of the catalogue equal its test goals; use a larger catalogue.",
  )
}

function testGoalCount(goals: GoalTable): number {
  return Math.min(mostTestGoals, Math.ceil(goals.size / 5))
}

const known = new WeakMap<GoalTable, ReadonlySet<string>>()

function heldOutTexts(goals: GoalTable): ReadonlySet<string> {
  let texts = known.get(goals)
  if (!texts) {
    texts = new Set(Array.from({ length: testGoalCount(goals) }, (_, place) => goals.at(place).instruction))
    known.set(goals, texts)
  }
  return texts
}
