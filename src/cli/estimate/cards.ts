import { GigpoError } from "../../util/errors.ts"

/** Datasheet of a GPU: upper bounds that are not reached in practice. */
export interface Card {
  readonly name: string
  /** Dense bfloat16 operations per second on tensor cores, with float32 accumulation. */
  readonly bfloat16: number
  /** float32 operations per second without tensor cores. */
  readonly float32: number
  /** Memory bandwidth in bytes per second. */
  readonly bandwidth: number
  readonly memoryBytes: number
}

/** Known GPUs. The first match counts, so that more specific names come first. */
export const cards: readonly Card[] = [
  card("B200", 2250, 80, 8, 180),
  card("H200", 989, 67, 4.8, 141),
  card("H100 PCIe", 756, 51, 2.04, 80),
  card("H100", 989, 67, 3.35, 80),
  card("A100", 312, 19.5, 2.04, 80),
  card("L40S", 362, 91.6, 0.86, 48),
  card("L4", 121, 30.3, 0.3, 24),
  card("A10", 125, 31.2, 0.6, 24),
  card("RTX 4090", 165, 82.6, 1.01, 24),
  card("RTX 3090", 71, 35.6, 0.94, 24),
]

function card(name: string, bfloat16: number, float32: number, bandwidth: number, memory: number): Card {
  return {
    name,
    bfloat16: bfloat16 * 1e12,
    float32: float32 * 1e12,
    bandwidth: bandwidth * 1e12,
    memoryBytes: memory * 1e9,
  }
}

/** Finds a card by a driver's name ("NVIDIA H100 80GB HBM3") or a user's ("h100"). */
export function findCard(name: string): Card | undefined {
  const words = ` ${name.toLowerCase().replace(/[-_]/g, " ")} `
  return cards.find((one) =>
    one.name
      .toLowerCase()
      .split(" ")
      .every((word) => words.includes(` ${word} `)),
  )
}

/** Finds a card by name. Throws `BAD_ARGUMENT` with the known names. */
export function requireCard(name: string): Card {
  const found = findCard(name)
  if (found) return found
  const known = cards.map((one) => one.name).join(", ")
  throw new GigpoError("BAD_ARGUMENT", `The card ${JSON.stringify(name)} is unknown; choose one of ${known}.`)
}
