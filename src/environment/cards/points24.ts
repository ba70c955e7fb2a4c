import { oneOf } from "../../options/field.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Environment } from "../environment.ts"
import type { PythonRandom } from "../mersenne-twister.ts"
import { readOptions } from "../options.ts"
import { formulaEnvironment } from "./formula-game.ts"
import { type CardTask, cardFields } from "./options.ts"

export const points24Fields = {
  ...cardFields(22),
  solvable: oneOf(
    "any",
    ["any", "only"],
    'Which deals there are. "any": all, of which some have no solution. "only": those that four numbers and `+ - * / ( )` can solve.',
  ),
}

/** Options of `points24`. */
export type Points24Options = OptionsOf<typeof points24Fields>

const rules = `You build a formula, one element at a time, whose value is 24. It must use all four cards, each once. Number \
cards count what they show, A counts 1, and J, Q and K count 10.

Each action appends one element at the end of the formula: the number of a card that is not used yet, one of + - * / or a \
bracket, ( or ). The action = ends the formula and evaluates it: 24 with all four cards used earns 10, and nothing else earns anything.`

/**
 * RL4VLM's Points24 as verl-agent plays it: four cards, `+ - * / ( )`, target 24. A right formula gives 10; anything else
 * gives 0 ("rl4vlm": -1 for a refused number and a failed formula, and nothing else differs). Formulas are evaluated as
 * Python does it, so 8/(3-8/3) is 23.99… and fails, and 2 and 4 side by side are 24. The step after the 21st element ends the
 * episode; the step limit is 22 by default, so that it never comes first (verl-agent names none for this world).
 *
 * Only seeds are held out for the test: there are 1,820 hands but for their order, so most test hands recur in training.
 *
 * Metrics: `success`. Throws `BAD_CONFIG` where options are wrong.
 */
export function points24(options: Points24Options = {}): Environment<CardTask> {
  const resolved = readOptions("points24", options, points24Fields)
  const solvableOnly = resolved.solvable === "only"
  const operators = ["+", "-", "*", "/", "(", ")"]
  return formulaEnvironment(
    { name: "points24", target: 24, operators, maxLength: 20, rules, draw, solvableOnly },
    resolved,
  )
}

const suits = ["H", "S", "D", "C"]

function draw(random: PythonRandom): number[] {
  const ranks = Array.from({ length: 4 }, () => random.randint(1, 13))
  for (const _ of ranks) random.choice(suits)
  return ranks
}
