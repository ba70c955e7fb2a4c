import type { EpisodeTable } from "../../data/episode-table.ts"
import type { Route } from "../view.ts"
import { episodeRoute } from "./routes.ts"

/** List of episodes as it was last shown. */
interface Listed {
  readonly table: EpisodeTable
  readonly places: Uint32Array
  /** Address of the list. */
  readonly back: string
}

const lists = new Map<string, Listed>()

/** Stores the last list of a run, whose order the links to the previous and next episode follow while the page is open. */
export function rememberOrder(run: string, listed: Listed): void {
  lists.set(run, listed)
}

export function lastList(run: string): Listed | undefined {
  return lists.get(run)
}

/** Routes of the previous and next episode in the last list; in the group if the list does not contain the episode. */
export function neighbours(
  run: string,
  iteration: number,
  group: number,
  member: number,
  members: readonly number[],
): { readonly before?: Route; readonly after?: Route } {
  const listed = lists.get(run)
  const at = listed?.places.findIndex(
    (place) =>
      listed.table.iteration[place] === iteration &&
      listed.table.group[place] === group &&
      listed.table.member[place] === member,
  )
  const beside = (by: number): Route | undefined => {
    if (!listed || at === undefined || at < 0) {
      const other = members[members.indexOf(member) + by]
      return other === undefined ? undefined : episodeRoute(run, iteration, group, other)
    }
    const { table } = listed
    const place = listed.places[at + by]
    return place === undefined
      ? undefined
      : episodeRoute(run, table.iteration[place]!, table.group[place]!, table.member[place]!)
  }
  const [before, after] = [beside(-1), beside(1)]
  return { ...(before && { before }), ...(after && { after }) }
}
