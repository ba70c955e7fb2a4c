import type { StepRecord } from "./estimator.ts"

interface Belief {
  readonly task?: { readonly phase?: unknown; readonly target?: unknown } | null
  readonly state?: { readonly objects?: object | null; readonly states?: object | null } | null
}

/**
 * Returns a key of the belief that a completion states, for step groups (ReBel, arXiv 2605.20061). The key consists of the phase of the
 * task, its target without articles and punctuation, whether an object is in the hand, and whether the state of an object was changed.
 * Numbers stay in the target: "apple 1" and "apple 2" differ. The belief is read from the JSON between <belief> tags, `{ task: { phase,
 * target }, state: { objects, states } }`. All unreadable beliefs have the same key. The authors take the phase from the admissible
 * actions of the environment; pass a function of the step for that.
 */
export function beliefKey({ text }: Pick<StepRecord, "text">): string {
  const belief = readBelief(text)
  if (belief === undefined) return "unreadable"
  const { task, state } = belief
  const places = Object.values(state?.objects ?? {})
  return JSON.stringify([
    String(task?.phase ?? "")
      .trim()
      .toLowerCase(),
    plainName(String(task?.target ?? "")),
    places.some((place) => String(place).toLowerCase().includes("in_hand")),
    Object.keys(state?.states ?? {}).length > 0,
  ])
}

function readBelief(text: string): Belief | undefined {
  const inside = /<belief>(.*?)<\/belief>/is.exec(text)?.[1]
  try {
    const found: unknown = JSON.parse(inside ?? "")
    return typeof found === "object" && found !== null ? found : undefined
  } catch {
    return undefined
  }
}

function plainName(name: string): string {
  const words = name
    .toLowerCase()
    .replace(/[^a-z0-9\s]/g, "")
    .split(/\s+/)
  return words.filter((word) => !["", "a", "an", "the"].includes(word)).join(" ")
}
