/** Function that returns all solutions of a hand, shortest first; an empty list if there is none. */
export type FormulaSolver = (values: readonly number[]) => readonly (readonly string[])[]

/** Part of a formula: its value as a float, its elements, and the precedence of its last operator. */
interface Part {
  readonly value: number
  readonly elements: readonly string[]
  readonly rank: 1 | 2 | 3
}

/**
 * Makes a solver that tries all formulas with each number used once. Other formulas that Python accepts are not tried: joined numbers,
 * powers, floor division, signs.
 */
export function formulaSolver(operators: readonly string[], target: number): FormulaSolver {
  // At most 715 hands of four values from 1 to 10: about 5 MB.
  const known = new Map<string, readonly (readonly string[])[]>()
  return (values) => {
    const key = [...values].sort((a, b) => a - b).join(" ")
    const before = known.get(key)
    if (before) return before
    const solutions = new Map<string, readonly string[]>()
    const numbers = key.split(" ").map((digits): Part => ({ value: Number(digits), elements: [digits], rank: 3 }))
    combine(numbers, operators, ({ value, elements }) => {
      if (value === target) solutions.set(elements.join(""), elements)
    })
    const sorted = [...solutions.values()].sort((a, b) => a.length - b.length)
    known.set(key, sorted)
    return sorted
  }
}

/** Joins two parts in every way, recursively until one is left: every expression tree over the numbers. */
function combine(parts: readonly Part[], operators: readonly string[], found: (whole: Part) => void): void {
  if (parts.length === 1) found(parts[0]!)
  for (const [i, left] of parts.entries()) {
    for (const [j, right] of parts.entries()) {
      if (i === j) continue
      const others = parts.filter((_, index) => index !== i && index !== j)
      for (const operator of operators) combine([join(left, operator, right), ...others], operators, found)
    }
  }
}

function join(left: Part, operator: string, right: Part): Part {
  const rank = operator === "+" || operator === "-" ? 1 : 2
  const wrap = (part: Part, needed: boolean) => (needed ? ["(", ...part.elements, ")"] : part.elements)
  return {
    value: operate(left.value, operator, right.value),
    // Python evaluates from left to right, and the order matters for floats.
    elements: [...wrap(left, left.rank < rank), operator, ...wrap(right, right.rank <= rank)],
    rank,
  }
}

function operate(a: number, operator: string, b: number): number {
  if (operator === "+") return a + b
  if (operator === "-") return a - b
  return operator === "*" ? a * b : a / b
}
