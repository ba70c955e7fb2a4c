import type { Route } from "../view.ts"

/** Route of an episode: `#/episodes/<run>/<iteration>/<group>/<member>?step=<n>`, steps from 0; `with` selects an episode to compare. */
export function episodeRoute(
  run: string,
  iteration: number,
  group: number,
  member: number,
  query: Readonly<Record<string, string>> = {},
): Route {
  return { path: ["episodes", run, String(iteration), String(group), String(member)], query }
}

/** Route of a group's episodes, or of those that visited a state: `#/episodes/<run>/<iteration>/<group>?state=<stepGroup>`. */
export function taskRoute(run: string, iteration: number, group: number, state?: number): Route {
  return {
    path: ["episodes", run, String(iteration), String(group)],
    query: state === undefined ? {} : { state: String(state) },
  }
}
