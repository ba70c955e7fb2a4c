import { whileReading } from "../notice.ts"
import { oneRun } from "../one-run.ts"
import type { View } from "../view.ts"
import { compared } from "./compare.ts"
import { conversation } from "./conversation.ts"
import { episodeList } from "./list.ts"

/** View of episodes: the list, one episode, or a comparison of two. Routes are in routes.ts. */
export const episodes: View = async (root, route, context) => {
  const { source, signal } = context
  const [, , iteration, group, member] = route.path
  const { run, choice } = oneRun(route, context)
  if (member === undefined && choice) root.append(choice)
  if (member === undefined) return await episodeList(root, run, route, context)
  const place = `group ${group} of iteration ${iteration}`
  const members = [member, ...(route.query.with === undefined ? [] : [route.query.with])].map(Number)
  const reading = source.group(run.id, Number(iteration), Number(group), members, signal)
  const recorded = await whileReading(root, place, reading)
  const episode = recorded?.episodes.find((one) => one.member === Number(member))
  if (!recorded || !episode)
    throw new Error(
      `Episode ${member} of ${place} is not available: it was not recorded, its file was removed, or this report does not contain it.`,
    )
  const other = recorded.episodes.find((one) => one.member === Number(route.query.with ?? Number.NaN))
  if (other) compared(root, { run, recorded, left: episode, right: other }, context)
  else await conversation(root, { run, recorded, episode }, route, context)
}
