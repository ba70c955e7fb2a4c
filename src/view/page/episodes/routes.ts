import type { Route } from "../view.ts"

/** Where an episode is read: `#/episodes/<run>/<iteration>/<group>/<member>?step=<n>`, steps from 0; `with` another, they are compared. */
export function episodeRoute(
  run: string,
  iteration: number,
  group: number,
  member: number,
  query: Readonly<Record<string, string>> = {},
): Route {
  return { path: ["episodes", run, String(iteration), String(group), String(member)], query }
}

/** All episodes of one task, or those that stood in one of its states: `#/episodes/<run>/<iteration>/<group>?state=<stepGroup>`. */
export function taskRoute(run: string, iteration: number, group: number, state?: number): Route {
  return {
    path: ["episodes", run, String(iteration), String(group)],
    query: state === undefined ? {} : { state: String(state) },
  }
}
