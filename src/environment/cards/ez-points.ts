import type { Environment } from "../environment.ts"
import type { PythonRandom } from "../mersenne-twister.ts"
import { readOptions } from "../options.ts"
import { type DrawnCard, type FormulaGame, formulaEnvironment, suits } from "./formula-game.ts"
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
 * EZPoints of RL4VLM, as in verl-agent: two cards, `+` and `*`, target 12, always solvable. Rewards: 10 for a correct formula, else 0
 * (`reward: "rl4vlm"`: -1 for a rejected number and for a failed formula). The step after the sixth element ends the episode. The default
 * of `maxSteps` is 8. There are 19 ordered hands.
 *
 * `reward: "rl4vlm"` changes only the rewards. The original also appends a space to the formula for a rejected number.
 *
 * The test holds out seeds only. Every test hand occurs in training, so the test does not detect memorization.
 *
 * Metrics: `success`.
 *
 * @throws BAD_CONFIG for unknown or invalid options
 */
export function ezPoints(options: EzPointsOptions = {}): Environment<CardTask> {
  return formulaEnvironment(game, readOptions("ez-points", options, ezPointsFields))
}

function draw(random: PythonRandom): DrawnCard[] {
  const rank = random.randint(2, 13)
  const first = { rank, suit: random.choice(suits) }
  const value = Math.min(rank, 10)
  const byProduct = [1, 2, 3, 4, 6].includes(value) && random.random() <= 0.5
  const second = { rank: byProduct ? 12 / value : 12 - value, suit: random.choice(suits) }
  return random.random() <= 0.5 ? [second, first] : [first, second]
}
