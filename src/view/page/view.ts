import type { RunInfo, Source } from "../data/source.ts"
import type { RunStore } from "./run-store.ts"

/** Where in the page somebody is; stands in the address behind the #: `#/graph/0/12/3?colour=return`. */
export interface Route {
  /** A view's name and what it shows. */
  readonly path: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

export interface PageContext {
  readonly source: Source
  /** All of them, as they were when the view was opened; `store` has them as they are now. */
  readonly runs: readonly RunInfo[]
  /** Runs, which of them are shown, and their reports; tells when they change. */
  readonly store: RunStore
  /** Aborted when the view is left: listeners, timers and requests end with it. */
  readonly signal: AbortSignal
  /** Says in the address where somebody is; `replace` without a step to go back to, and without drawing the view again. */
  go(route: Route, options?: { readonly replace?: boolean }): void
  /** Tells a screen reader, and nobody else. */
  announce(text: string): void
}

/** Fills `root`. What it throws is shown in its place. */
export type View = (root: HTMLElement, route: Route, context: PageContext) => void | Promise<void>

export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?")
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  }
}

export function writeRoute({ path, query }: Route): string {
  const words = new URLSearchParams(query).toString()
  return `#/${path.map(encodeURIComponent).join("/")}${words && `?${words}`}`
}

/** Somebody may have typed it. */
function decoded(word: string): string {
  try {
    return decodeURIComponent(word)
  } catch {
    return word
  }
}
