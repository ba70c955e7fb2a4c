import { oneOf } from "../../options/field.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Environment } from "../environment.ts"
import type { PythonRandom } from "../mersenne-twister.ts"
import { readOptions } from "../options.ts"
import { type DrawnCard, formulaEnvironment, suits } from "./formula-game.ts"
import { type CardTask, cardFields } from "./options.ts"

export const points24Fields = {
  ...cardFields(22),
  solvable: oneOf(
    "any",
    ["any", "only"],
    'Hands that are dealt. "any": all, including hands without a solution. "only": hands that the four numbers and `+ - * / ( )` can solve.',
  ),
}

/** Options of `points24`. */
export type Points24Options = OptionsOf<typeof points24Fields>

const rules = `You build a formula, one element at a time, whose value is 24. It must use all four cards, each once. Number \
cards count what they show, A counts 1, and J, Q and K count 10.

Each action appends one element at the end of the formula: the number of a card that is not used yet, one of + - * / or a \
bracket, ( or ). The action = ends the formula and evaluates it: 24 with all four cards used earns 10, and nothing else earns anything.`

/**
 * Points24 of RL4VLM, as in verl-agent: four cards, `+ - * / ( )`, target 24. Rewards: 10 for a correct formula, else 0
 * (`reward: "rl4vlm"`: -1 for a rejected number and for a failed formula). Formulas are evaluated as in Python: 8/(3-8/3) is 23.99… and
 * fails, and an adjacent 2 and 4 are 24. The step after the 21st element ends the episode. The default of `maxSteps` is 22, which does not
 * shorten episodes; verl-agent defines no limit for this environment.
 *
 * The test holds out seeds only. There are 1,820 unordered hands, so most test hands occur in training.
 *
 * Metrics: `success`.
 *
 * @throws BAD_CONFIG for unknown or invalid options
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

function draw(random: PythonRandom): DrawnCard[] {
  const ranks = Array.from({ length: 4 }, () => random.randint(1, 13))
  return ranks.map((rank) => ({ rank, suit: random.choice(suits) }))
}
