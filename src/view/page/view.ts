import type { RunInfo, Source } from "../data/source.ts"
import type { RunStore } from "./run-store.ts"

/** Location in the page, stored in the address after the #: `#/graph/0/12/3?colour=return`. */
export interface Route {
  /** Name of a view and its arguments. */
  readonly path: readonly string[]
  readonly query: Readonly<Record<string, string>>
}

export interface PageContext {
  readonly source: Source
  /** All runs at the time the view was opened; `store` has the current ones. */
  readonly runs: readonly RunInfo[]
  /** Runs, the selection of shown runs, and their reports; notifies about changes. */
  readonly store: RunStore
  /** Signal that is aborted when the view is left. Ends its listeners, timers and requests. */
  readonly signal: AbortSignal
  /** Changes the address. `replace` adds no history entry and does not draw the view again. */
  go(route: Route, options?: { readonly replace?: boolean }): void
  /** Announces a text to screen readers only. */
  announce(text: string): void
}

/** Function that fills `root`. An error is shown in place of the view. */
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

/** Decoded part of the address, which may have been typed and be invalid. */
function decoded(word: string): string {
  try {
    return decodeURIComponent(word)
  } catch {
    return word
  }
}
