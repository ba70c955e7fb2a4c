import { isObject } from "../options/read.ts"
import type { CustomValue } from "../options/table.ts"
import type { RunObserver } from "./observers.ts"

const events: readonly string[] = Object.keys({
  start: true,
  episodes: true,
  evaluation: true,
  report: true,
  end: true,
} satisfies Record<keyof Omit<RunObserver, "name">, true>)

/** Observer of a module, or a list of observers. */
export const customObserver: CustomValue<RunObserver | readonly RunObserver[]> = {
  validate: (value) => (Array.isArray(value) ? value : [value]).map(observerProblem).find(Boolean),
}

function observerProblem(value: unknown): string | undefined {
  const known = `an observer: an object with ${events.slice(0, -1).join(", ")} or ${events.at(-1)}`
  if (!isObject(value)) return `must be ${known}`
  if (!events.some((event) => value[event] !== undefined)) return `must be ${known}; it has none of them`
  const wrong = events.find((event) => value[event] !== undefined && typeof value[event] !== "function")
  return wrong && `has a ${wrong} that is not a function`
}
