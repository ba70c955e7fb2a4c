import type { DataContext } from "../data/data.ts"
import type { Trainable } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { runsItself, statisticsOf } from "../training/accumulate.ts"
import type { DemonstrationSetup } from "../training/player.ts"
import { groupByTask } from "../training/rows.ts"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"
import { warner } from "../util/warn.ts"
import { type DataRows, dataRows } from "./data-sequences.ts"
import { expertRows } from "./expert-sequences.ts"
import { weighByImplicitQ } from "./implicit-q.ts"
import type { ResolvedSftOptions } from "./options.ts"
import type { SftSetup } from "./sft.ts"

/** Sequences of a supervised fine-tuning: [tasks][items][sequences of an item]. An item is never split between batches. */
export type SftSequences = readonly (readonly (readonly Sequence[])[])[]

/** Whether a loss needs preference pairs; undefined for a custom loss, which may take either. */
function wantsPairs({ loss }: ResolvedSftOptions): boolean | undefined {
  return "name" in loss ? loss.name === "dpo" : undefined
}

/** Returns the completions of the data, or of the expert, with the statistics of the model that the loss needs. */
export async function sftSequences<Task>(
  setup: SftSetup<Task>,
  options: ResolvedSftOptions,
  loss: TokenLoss,
  random: Random,
): Promise<SftSequences> {
  const { sequences, paired } =
    setup.data === undefined ? await played(setup, options, random) : await brought(setup, options)
  const weighed = options.implicitQ
    ? await weighByImplicitQ(setup, sequences, options.implicitQ, random.derive("values"))
    : sequences
  const known = loss.needs?.includes("reference") ? await withReference(setup, weighed) : weighed
  return groupByTask(known).map((task) => (paired ? [task] : task.map((row) => [row])))
}

async function played<Task>(setup: SftSetup<Task>, options: ResolvedSftOptions, random: Random): Promise<DataRows> {
  if (wantsPairs(options))
    throw bad(
      "The loss dpo needs preference pairs, which an expert does not provide: give data with chosen and rejected.",
    )
  if (options.implicitQ)
    throw bad("implicitQ needs completions with rewards: give data with recorded episodes of a run.")
  if (setup.environment === undefined) throw bad("sft needs an expert or data: give environment or data.")
  return {
    sequences: await expertRows(setup as SftSetup<Task> & DemonstrationSetup<Task>, options.tasks, random),
    paired: false,
  }
}

async function brought<Task>(setup: SftSetup<Task>, options: ResolvedSftOptions): Promise<DataRows> {
  const { policy, tokenizer, signal, agent, expert } = setup
  const onWarning = warner(setup.onWarning)
  if (options.implicitQ && wantsPairs(options))
    throw bad(
      "implicitQ needs rewards, which preference pairs do not have: leave implicitQ out, or use the loss cross-entropy.",
    )
  if (agent !== undefined || expert !== undefined)
    throw bad("data and an expert are both given; give only one of them.")
  const { completions, successfulOnly, tooLong } = options
  const context: DataContext = { tokenizer, completions, successfulOnly, signal, onWarning }
  return await dataRows({ ...context, policy, data: setup.data!, tooLong, pairs: wantsPairs(options) })
}

/** Adds log-probabilities of the reference policy, which is the model before the first step. No copy of the model is kept. */
async function withReference(
  { policy, signal }: Pick<SftSetup, "policy" | "signal">,
  rows: readonly Sequence[],
): Promise<Sequence[]> {
  const { logProbs } = await policy.logProbs(rows, { signal })
  let end = 0
  return rows.map((row) => {
    const segments = row.segments.map((segment) => {
      const start = end
      end += segment.length
      return { ...segment, referenceLogProbs: logProbs.subarray(start, end) }
    })
    return { ...row, segments }
  })
}

/** Checks that a supervised fine-tuning and its engine support a loss. */
export async function checkSftLoss(policy: Trainable, loss: TokenLoss): Promise<void> {
  const strange = loss.teacherTop ? "teacher" : loss.needs?.find((need) => need === "teacher" || need === "hellinger")
  if (strange !== undefined)
    throw bad(
      `The loss ${loss.name} needs "${strange}", which is not available in supervised fine-tuning: use another loss.`,
    )
  const native = loss.native?.({ iteration: 0, iterations: 1 })
  const refusals = await policy.check({
    loss: runsItself(policy, native) ?? "linear",
    entropyCoefficients: loss.needs?.includes("entropy") ?? false,
    statistics: statisticsOf(loss),
    models: [],
    optimizer: { learningRate: 0 },
    severalSegments: true,
    checkpoints: false,
  })
  if (refusals.length > 0) throw bad(`The engine cannot train with the loss ${loss.name}. ${refusals.join(" ")}`)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
