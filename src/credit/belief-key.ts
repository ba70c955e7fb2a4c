import type { StepRecord } from "./estimator.ts"

interface Belief {
  readonly task?: { readonly phase?: unknown; readonly target?: unknown } | null
  readonly state?: { readonly objects?: object | null; readonly states?: object | null } | null
}

/**
 * What a reply says that it believes, as far as it tells step groups apart (ReBel, arXiv 2605.20061): the phase of the task, its target
 * without articles and punctuation (numbers stay: "apple 1" is another thing than "apple 2"), whether an object is in the hand, and
 * whether the state of one was changed. Read from the JSON between <belief> tags, `{ task: { phase, target }, state: { objects, states }
 * }`; all that cannot be read is one belief. The authors take the phase from the environment's admissible actions: hand in a function
 * of the step for that.
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
