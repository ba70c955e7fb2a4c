import type { Sequence } from "../engine/rows.ts"
import { integer, oneOf } from "../options/field.ts"
import type { Resolved } from "../options/table.ts"
import type { Random } from "../util/random.ts"
import { batches, byEpisode, byTask } from "./rows.ts"

/** How an iteration's rows become the batches of its optimizer steps. */
export const batchFields = {
  batchSteps: integer(256, "Steps of episodes of one optimizer step.", { min: 1 }),
  batchEpisodes: integer(
    undefined,
    "Episodes of one optimizer step, whose steps stay together; in place of batchSteps.",
    {
      min: 1,
      defaultText: "batchSteps counts",
    },
  ),
  updates: integer(undefined, "Optimizer steps of each pass, however much was played; in place of batchSteps.", {
    min: 1,
    defaultText: "as many as batchSteps, or batchEpisodes, makes",
  }),
  epochs: integer(1, "Passes over an iteration's steps.", { min: 1 }),
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
export function planUpdates(rows: readonly Sequence[], options: BatchOptions, random: Random): Sequence[][] {
  const { batchSteps, batchEpisodes, updates, epochs, unit } = options
  const tasks = byTask(rows)
  const pass = (order: Random): Sequence[][] => {
    if (batchEpisodes === undefined)
      return batches(
        tasks,
        updates === undefined ? batchSteps : { parts: updates },
        order,
        unit === "row" ? () => 1 : undefined,
      )
    return batches(tasks.map(byEpisode), batchEpisodes, order, () => 1).map((episodes) => episodes.flat())
  }
  return Array.from({ length: epochs }, (_, epoch) => pass(random.fork(epoch))).flat()
}
