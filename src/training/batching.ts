import type { Row } from "../engine/rows.ts"
import { oneOf, whole } from "../options/field.ts"
import type { Resolved } from "../options/table.ts"
import type { Random } from "../random.ts"
import { batches, byEpisode, byTask } from "./rows.ts"

/** How an iteration's rows become the batches of its optimizer steps. */
export const batchFields = {
  batchRows: whole(256, "Steps of episodes of one optimizer step.", { least: 1 }),
  batchEpisodes: whole(undefined, "Episodes of one optimizer step, whose steps stay together; in place of batchRows.", {
    least: 1,
    otherwise: "batchRows counts",
  }),
  updates: whole(undefined, "Optimizer steps of each pass, however much was played; in place of batchRows.", {
    least: 1,
    otherwise: "as many as batchRows, or batchEpisodes, makes",
  }),
  epochs: whole(1, "Passes over an iteration's steps.", { least: 1 }),
  unit: oneOf(
    "span",
    ["span", "row"],
    "What counts as a sequence, in ratios and in means: the reply of one step, or all replies of a conversation that only grows.",
  ),
}

type BatchOptions = Resolved<typeof batchFields>

/** What is wrong with options that are fine one by one. */
export function batchProblem({ batchEpisodes, updates }: BatchOptions): string | undefined {
  if (batchEpisodes === undefined || updates === undefined) return undefined
  return "updates and batchEpisodes both say how large a batch is; give one of them."
}

/** The batches of one iteration, pass after pass, each with the tasks in an order of its own. */
export function planUpdates(rows: readonly Row[], options: BatchOptions, random: Random): Row[][] {
  const { batchRows, batchEpisodes, updates, epochs, unit } = options
  const tasks = byTask(rows)
  const pass = (order: Random): Row[][] => {
    if (batchEpisodes === undefined)
      return batches(
        tasks,
        updates === undefined ? batchRows : { parts: updates },
        order,
        unit === "row" ? () => 1 : undefined,
      )
    return batches(tasks.map(byEpisode), batchEpisodes, order, () => 1).map((episodes) => episodes.flat())
  }
  return Array.from({ length: epochs }, (_, epoch) => pass(random.fork(epoch))).flat()
}
