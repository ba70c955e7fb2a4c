import type { Environment, Observation } from "../environment.ts"
import { PythonRandom } from "../mersenne-twister.ts"
import { type CardGame, cardEnvironment, type Table } from "./card-environment.ts"
import type { Card, Suit } from "./draw.ts"
import { evaluate } from "./evaluate.ts"
import type { CardSettings, CardTask } from "./options.ts"
import { type FormulaSolver, formulaSolver } from "./solve.ts"

/** Definition of a game in which a formula of all cards must have a target value. */
export interface FormulaGame {
  readonly name: string
  readonly target: number
  /** Operators in the order of verl-agent's list, without `=`. */
  readonly operators: readonly string[]
  /** Number of elements above which the next step ends the episode. */
  readonly maxLength: number
  readonly rules: string
  draw(random: PythonRandom): readonly DrawnCard[]
  /** Whether hands without a solution are skipped. */
  readonly solvableOnly?: boolean
}

export interface DrawnCard {
  /** From 1 to 13. */
  readonly rank: number
  readonly suit: Suit
}

/** Suits in the order in which RL4VLM draws from them. */
export const suits: readonly Suit[] = ["H", "S", "D", "C"]

const rankNames = ["A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"]
const numbers = rankNames.map((_, index) => String(index + 1)).slice(0, 10)
const rankName = (rank: number) => rankNames[rank - 1]!
const cardValue = (rank: number) => Math.min(rank, 10)

/**
 * Environment of RL4VLM's formula games, as in verl-agent. Each action appends one element to the formula; `=` evaluates it as Python does
 * and ends the episode. A number that is on no unused card is rejected without a change. If the formula is already too long, any step ends
 * the episode without success.
 */
export function formulaEnvironment(formula: FormulaGame, options: CardSettings): Environment<CardTask> {
  const { target, operators } = formula
  const solver = formulaSolver(
    operators.filter((operator) => !"()".includes(operator)),
    target,
  )
  const actions = [...numbers, ...operators, "="]
  const draw = (seed: number) => formula.draw(new PythonRandom(seed))
  const game: CardGame = {
    name: formula.name,
    actions,
    rules: formula.rules,
    choice: `a card's number, ${operators.join(" ")} or =`,
    thoughts: "which numbers are unused, what the formula needs to come to the value, and what to append next",
    caption: (now) => now.text.slice(now.text.indexOf("\n") + 1),
    deal: (seed) => table(formula, draw(seed), options.reward === "rl4vlm" ? -1 : 0),
    advise: (now) => advise(solver, now),
    ...(formula.solvableOnly && {
      accepts: (seed) => solver(draw(seed).map(({ rank }) => cardValue(rank))).length > 0,
    }),
  }
  return cardEnvironment(game, options)
}

function table(game: FormulaGame, drawn: readonly DrawnCard[], failure: -1 | 0): Table {
  const formula: string[] = []
  const cards = drawn.map(({ rank, suit }): Card => ({ rank: rankName(rank), suit }))
  const unused = drawn.map(({ rank }) => String(cardValue(rank)))
  const fail = (end: "terminated" | "truncated" | undefined) =>
    ({ reward: failure, terminated: end === "terminated", truncated: end === "truncated", success: false }) as const
  return {
    observe: (): Observation => {
      const text = `Cards: ${cards.map(({ rank }) => rank).join(" ")}\nFormula: ${formula.join("")}`
      return { text, anchor: text, actions: [...new Set(unused), ...game.operators, "="] }
    },
    draw: async () => (await import("./draw.ts")).drawFormula(cards, formula),
    play(action) {
      if (formula.length > game.maxLength) return fail("truncated")
      if (action === "=") {
        const value = evaluate(formula.join(""))
        // Python finds 24 and 24.0 equal.
        const success = value !== undefined && Number(value) === game.target && unused.length === 0
        return success ? { reward: 10, terminated: true, success } : fail("terminated")
      }
      if (numbers.includes(action)) {
        const card = unused.indexOf(action)
        if (card < 0) return fail(undefined)
        unused.splice(card, 1)
      }
      formula.push(action)
      return { reward: 0, terminated: false, success: false }
    },
  }
}

/** Next element of the shortest solution that begins with the current formula. */
function advise(solver: FormulaSolver, now: Observation): string | undefined {
  const [, cards, formula] = /^Cards: (.*)\nFormula: (.*)$/.exec(now.text) ?? []
  if (cards === undefined || formula === undefined) return undefined
  const values = cards.split(" ").map((name) => cardValue(rankNames.indexOf(name) + 1))
  // No element begins with 0, so a text has only one split into elements: 110 is 1 and 10, 101 is 10 and 1.
  const written = formula.match(/10|[1-9]|[^\d]/g) ?? []
  const solution = solver(values).find((elements) => written.every((element, i) => elements[i] === element))
  return solution && (solution[written.length] ?? "=")
}
