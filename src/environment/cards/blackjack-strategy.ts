/** Value of the cards of a player or a dealer. */
export interface Hand {
  /** The sum with every ace as 1. */
  readonly low: number
  readonly ace: boolean
}

export function handOf(values: readonly number[]): Hand {
  return { low: values.reduce((sum, value) => sum + value, 0), ace: values.includes(1) }
}

/** Sum of a hand. One ace counts 11 unless the sum would exceed 21. */
export function total({ low, ace }: Hand): number {
  return ace && low + 10 <= 21 ? low + 10 : low
}

/** Values of an infinite deck with their probabilities. */
const cards = Array.from({ length: 10 }, (_, i) => [i + 1, (i === 9 ? 4 : 1) / 13] as const)

function withCard(hand: Hand, value: number): Hand {
  return { low: hand.low + value, ace: hand.ace || value === 1 }
}

/**
 * Action of highest expected reward, from exact probabilities: a win gives 1, a draw 0, a lost hand `loss`. If both actions are equal,
 * the action is "stand".
 */
export function blackjackStrategy(loss: -1 | 0): (hand: Hand, dealerShows: number) => "stand" | "hit" {
  const known = new Map<string, { stand: number; hit: number }>()
  const values = (hand: Hand, shown: number): { stand: number; hit: number } => {
    const key = `${hand.low} ${hand.ace} ${shown}`
    const before = known.get(key)
    if (before) return before
    const expectation = (next: Hand) => {
      if (total(next) > 21) return loss
      const { stand, hit } = values(next, shown)
      return Math.max(stand, hit)
    }
    const found = {
      stand: standValue(total(hand), shown, loss),
      hit: cards.reduce((sum, [value, probability]) => sum + probability * expectation(withCard(hand, value)), 0),
    }
    known.set(key, found)
    return found
  }
  return (hand, shown) => {
    const { stand, hit } = values(hand, shown)
    return hit > stand ? "hit" : "stand"
  }
}

function standValue(mine: number, shown: number, loss: number): number {
  let value = 0
  for (const [theirs, probability] of dealerScores(shown)) {
    value += probability * (mine > theirs ? 1 : mine < theirs ? loss : 0)
  }
  return value
}

const knownScores = new Map<number, ReadonlyMap<number, number>>()

/** Probability of each final score of a dealer whose first card is `shown`; a score of 0 is a bust. */
export function dealerScores(shown: number): ReadonlyMap<number, number> {
  const before = knownScores.get(shown)
  if (before) return before
  const scores = new Map<number, number>()
  const draw = (hand: Hand, probability: number): void => {
    const sum = total(hand)
    if (sum >= 17) {
      const score = sum > 21 ? 0 : sum
      scores.set(score, (scores.get(score) ?? 0) + probability)
    } else {
      for (const [value, chance] of cards) draw(withCard(hand, value), probability * chance)
    }
  }
  draw(handOf([shown]), 1)
  knownScores.set(shown, scores)
  return scores
}
