import type { Environment } from "../environment.ts"
import type { PythonRandom } from "../mersenne-twister.ts"
import { readOptions } from "../options.ts"
import { type FormulaGame, formulaEnvironment } from "./formula-game.ts"
import { type CardOptions, type CardTask, cardFields } from "./options.ts"

export const ezPointsFields = cardFields(8)

/** Options of `ezPoints`. */
export type EzPointsOptions = CardOptions

const game: FormulaGame = {
  name: "ez-points",
  target: 12,
  operators: ["+", "*"],
  maxLength: 5,
  draw,
  rules: `You build a formula, one element at a time, whose value is 12. It must use both cards, each once. Number cards \
count what they show, A counts 1, and J, Q and K count 10.

Each action appends one element at the end of the formula: the number of a card that is not used yet, + or *. The action = \
ends the formula and evaluates it: 12 with both cards used earns 10, and nothing else earns anything.`,
}

/**
 * RL4VLM's EZPoints as verl-agent plays it: two cards, `+` and `*`, target 12, always solvable. A right formula gives 10;
 * anything else gives 0 ("rl4vlm": -1 for a refused number and a failed formula). The step after the sixth element ends the
 * episode; the step limit is 8 by default. There are 19 hands, order included.
 *
 * "rl4vlm" changes the rewards alone: RL4VLM's own world also writes a space into the formula for a refused number.
 *
 * Only seeds are held out for the test: every test hand recurs in training, so the test does not tell learning from
 * knowing by heart.
 *
 * Metrics: `success`. Throws `BAD_CONFIG` where options are wrong.
 */
export function ezPoints(options: EzPointsOptions = {}): Environment<CardTask> {
  return formulaEnvironment(game, readOptions("ez-points", options, ezPointsFields))
}

const suits = ["H", "S", "D", "C"]

function draw(random: PythonRandom): number[] {
  const first = random.randint(2, 13)
  random.choice(suits)
  const value = Math.min(first, 10)
  const byProduct = [1, 2, 3, 4, 6].includes(value) && random.random() <= 0.5
  const second = byProduct ? 12 / value : 12 - value
  random.choice(suits)
  return random.random() <= 0.5 ? [second, first] : [first, second]
}
