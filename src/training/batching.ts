import type { Sequence } from "../engine/sequence.ts"
import { integer, oneOf } from "../options/field.ts"
import type { ResolvedOf } from "../options/table.ts"
import type { Pieces } from "../util/pace.ts"
import type { Random } from "../util/random.ts"
import { batchesInPieces, episodeOf, gatherInPieces, taskOf } from "./rows.ts"

/** Options that divide the steps of an iteration into updates. */
export const batchFields = {
  stepsPerUpdate: integer(256, "Episode steps per update (optimizer step); with `unit: conversation`, conversations.", {
    min: 1,
  }),
  episodesPerUpdate: integer(
    undefined,
    "Episodes per update, instead of stepsPerUpdate; the steps of an episode stay in one update.",
    {
      min: 1,
      defaultText: "stepsPerUpdate applies",
    },
  ),
  updatesPerEpoch: integer(
    undefined,
    "Updates per epoch, independent of the number of steps; instead of stepsPerUpdate.",
    {
      min: 1,
      defaultText: "determined by stepsPerUpdate or episodesPerUpdate",
    },
  ),
  epochs: integer(1, "Number of epochs: passes over the steps of an iteration (TRL: num_iterations).", { min: 1 }),
  unit: oneOf(
    "completion",
    ["completion", "conversation"],
    "What losses call a sequence in their ratios and means: the completion of one step, as in TRL, or the conversation, with all completions " +
      "of an episode that extend each other.",
  ),
}

type BatchOptions = ResolvedOf<typeof batchFields>

/** Message about options that exclude each other, or undefined. */
export function batchProblem({ episodesPerUpdate, updatesPerEpoch }: BatchOptions): string | undefined {
  if (episodesPerUpdate === undefined || updatesPerEpoch === undefined) return undefined
  return "updatesPerEpoch and episodesPerUpdate both set the batch size; give only one of them."
}

/**
 * Returns the batches of one iteration in order of updates, in pieces of one sequence. Each epoch has its own random order of tasks.
 *
 * @param replayed sequences in batches of their own, after the others in each epoch: `stepsPerUpdate` each, or `updatesPerEpoch` batches
 */
export function* planUpdates(
  rows: readonly Sequence[],
  { stepsPerUpdate, episodesPerUpdate, updatesPerEpoch, epochs, unit }: BatchOptions,
  random: Random,
  replayed: readonly Sequence[] = [],
): Pieces<Sequence[][]> {
  const tasks = yield* gatherInPieces(rows, taskOf)
  const episodes: Sequence[][][] = []
  if (episodesPerUpdate !== undefined) for (const task of tasks) episodes.push(yield* gatherInPieces(task, episodeOf))
  const size = updatesPerEpoch === undefined ? stepsPerUpdate : { parts: updatesPerEpoch }
  const count = unit === "conversation" ? () => 1 : undefined
  const again = replayed.map((row) => [row])
  const plan: Sequence[][][] = []
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = random.derive(epoch)
    if (episodesPerUpdate === undefined) plan.push(yield* batchesInPieces(tasks, size, order, count))
    else plan.push((yield* batchesInPieces(episodes, episodesPerUpdate, order, () => 1)).map((batch) => batch.flat()))
    plan.push(yield* batchesInPieces(again, size, order.derive("replay")))
  }
  return plan.flat()
}
