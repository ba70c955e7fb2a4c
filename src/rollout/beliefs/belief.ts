/** Belief that a completion states as JSON between <belief> tags (ReBel, arXiv 2605.20061). Parts of another type are empty. */
export interface Belief {
  /** Places of objects, e.g. `{ "mug 1": "on desk 1" }`; `in_hand` for an object that is carried. */
  readonly objects: Readonly<Record<string, string>>
  /** Changed states of objects, e.g. `{ "mug 1": "hot" }`. */
  readonly states: Readonly<Record<string, string>>
  readonly visited: readonly string[]
  readonly unvisited: readonly string[]
  /** Attributes of the wanted product, in a shop. */
  readonly wishes: Readonly<Record<string, string>>
  /** Attributes of the product that were seen. */
  readonly confirmed: Readonly<Record<string, string>>
  /** Number of wanted attributes that were not seen. */
  readonly open: number
  readonly phase: string
  readonly target: string
  readonly prediction: string
}

/** Belief in a completion; undefined without one that is a JSON object. */
export function readBelief(text: string): Belief | undefined {
  const inside = /<belief>(.*?)<\/belief>/is.exec(text)?.[1]
  const found = parsed(inside) ?? parsed(inside?.replaceAll("'", '"'))
  if (!found) return undefined
  const [state, task] = [recordOf(found.state), recordOf(found.task)]
  return {
    objects: textsOf(state.objects),
    states: textsOf(state.states),
    visited: listOf(state.visited),
    unvisited: listOf(state.unvisited_candidates),
    wishes: textsOf(state.target),
    confirmed: textsOf(state.confirmed),
    open: Object.keys(state.unconfirmed ?? {}).length,
    phase: wordOf(task.phase),
    target: wordOf(task.target),
    prediction: String(found.prediction ?? "").trim(),
  }
}

/** Whether the belief has an object in the hand. */
export function isHolding({ objects }: Belief): boolean {
  return Object.values(objects).some((place) => place.toLowerCase().includes("in_hand"))
}

function parsed(text: string | undefined): Record<string, unknown> | undefined {
  try {
    const found: unknown = JSON.parse(text ?? "")
    return typeof found === "object" && found !== null && !Array.isArray(found) ? recordOf(found) : undefined
  } catch {
    return undefined
  }
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

function textsOf(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(recordOf(value)).map(([key, one]) => [key, String(one ?? "")]))
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map((one) => String(one).toLowerCase()) : []
}

function wordOf(value: unknown): string {
  return String(value ?? "")
    .trim()
    .toLowerCase()
}
