import type { DataContext } from "../data/data.ts"
import type { Trainable } from "../engine/engine.ts"
import type { Row } from "../engine/rows.ts"
import { GigpoError } from "../errors.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import type { Random } from "../random.ts"
import { runsItself, statisticsOf } from "./accumulate.ts"
import type { CloneSetup } from "./clone.ts"
import { type DataRows, dataRows } from "./data-rows.ts"
import { expertRows } from "./expert-rows.ts"
import { weighByImplicitQ } from "./implicit-q.ts"
import type { ResolvedCloneOptions } from "./options.ts"
import type { TeacherSetup } from "./player.ts"
import { byTask } from "./rows.ts"

/** What is cloned: the rows of each item that no batch divides, with the items of one task together. */
export type ClonedRows = readonly (readonly (readonly Row[])[])[]

/** Whether a loss is of preference pairs; one of somebody's own may be of either. */
function wantsPairs({ loss }: ResolvedCloneOptions): boolean | undefined {
  return "name" in loss ? loss.name === "dpo" : undefined
}

/** The replies of the data, or else of the expert, with what the loss reads of the model as it is now. */
export async function clonedRows<Task>(
  setup: CloneSetup<Task>,
  options: ResolvedCloneOptions,
  loss: TokenLoss,
  random: Random,
): Promise<ClonedRows> {
  const { rows, paired } =
    setup.data === undefined ? await played(setup, options, random) : await brought(setup, options)
  const weighed = options.implicitQ
    ? await weighByImplicitQ(setup, rows, options.implicitQ, random.fork("values"))
    : rows
  const known = loss.needs?.includes("reference") ? await withReference(setup, weighed) : weighed
  return byTask(known).map((task) => (paired ? [task] : task.map((row) => [row])))
}

async function played<Task>(setup: CloneSetup<Task>, options: ResolvedCloneOptions, random: Random): Promise<DataRows> {
  if (wantsPairs(options))
    throw bad(
      "The loss dpo learns from preference pairs, which an expert does not give: give data with chosen and rejected.",
    )
  if (options.implicitQ)
    throw bad(
      "implicitQ weighs replies of which it is known what they earned: give data, the episodes that a run recorded.",
    )
  if (setup.environment === undefined) throw bad("clone needs somebody to learn from: give an environment, or data.")
  return {
    rows: await expertRows(setup as CloneSetup<Task> & TeacherSetup<Task>, options.tasks, random),
    paired: false,
  }
}

async function brought<Task>(setup: CloneSetup<Task>, options: ResolvedCloneOptions): Promise<DataRows> {
  const { policy, tokenizer, signal, agent, expert } = setup
  const { onWarning = (message) => process.emitWarning(message) } = setup
  if (options.implicitQ && wantsPairs(options))
    throw bad(
      "implicitQ weighs replies by what they earned, which pairs do not tell: leave it out, or take cross-entropy.",
    )
  if (agent !== undefined || expert !== undefined)
    throw bad("data and an expert are both given; one of them is learned from.")
  const { replies, successes, tooLong } = options
  const context: DataContext = { tokenizer, replies, successes, signal, onWarning }
  return await dataRows({ ...context, policy, data: setup.data!, tooLong, pairs: wantsPairs(options) })
}

/** The reference is the model before its first step: its log-probabilities are taken once, and no copy of it is kept. */
async function withReference(
  { policy, signal }: Pick<CloneSetup, "policy" | "signal">,
  rows: readonly Row[],
): Promise<Row[]> {
  const found = await policy.logProbs(rows, { signal })
  return rows.map((row, index) => {
    let end = 0
    const spans = row.spans.map((span) => {
      const start = end
      end += span.length
      return { ...span, referenceLogProbs: found[index]!.logProbs.subarray(start, end) }
    })
    return { ...row, spans }
  })
}

/** Refuses a loss that asks for what a cloning, or its engine, does not have. */
export async function checkCloningLoss(policy: Trainable, loss: TokenLoss): Promise<void> {
  const strange = loss.teacherTop ? "teacher" : loss.needs?.find((need) => need === "teacher" || need === "hellinger")
  if (strange !== undefined)
    throw bad(`The loss ${loss.name} needs "${strange}", which there is not in cloning: take another.`)
  const native = loss.native?.({ iteration: 0, iterations: 1 })
  const refusals = await policy.check({
    loss: runsItself(policy, native) ?? "linear",
    entropyCoefficients: loss.needs?.includes("entropy") ?? false,
    statistics: statisticsOf(loss),
    models: [],
    optimizer: { learningRate: 0 },
    manySpans: true,
    checkpoints: false,
  })
  if (refusals.length > 0) throw bad(`The engine cannot clone by the loss ${loss.name}. ${refusals.join(" ")}`)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
