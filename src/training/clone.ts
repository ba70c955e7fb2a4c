import type { Trainable } from "../engine/engine.ts"
import { type Row, stepRow } from "../engine/rows.ts"
import type { Environment } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import { crossEntropy } from "../loss/cross-entropy.ts"
import { readOptions } from "../options/read.ts"
import { Random } from "../random.ts"
import { playExpert } from "../rollout/expert.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { takeTasks } from "../rollout/tasks.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { accumulate } from "./accumulate.ts"
import { rateRules, settleRate } from "./learning-rate.ts"
import { type CloneOptions, cloneFields } from "./options.ts"
import type { Progress } from "./progress.ts"
import { Reports } from "./reports.ts"
import { batches, byTask } from "./rows.ts"
import { adamwAt } from "./schedule.ts"

export interface CloneSetup<Task = unknown> extends CloneOptions {
  readonly policy: Trainable
  readonly tokenizer: ChatCodec
  readonly environment: Environment<Task>
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

export interface CloneReport {
  readonly epoch: number
  readonly epochs: number
  /** Mean cross-entropy of the expert's tokens during this epoch, in nats. */
  readonly loss: number
  readonly rows: number
  readonly seconds: number
}

/**
 * Behaviour cloning: fits the policy to the replies of the environment's expert, so that reinforcement learning starts from
 * something sensible. Each report is one pass over the expert's steps. Iterate it, or await it for all of them.
 */
export function clone<Task>(setup: CloneSetup<Task>): Reports<CloneReport> {
  return new Reports(() => passes(setup))
}

async function* passes<Task>(setup: CloneSetup<Task>): AsyncGenerator<CloneReport, void, undefined> {
  const { policy, tokenizer, environment, signal, onProgress, ...given } = setup
  const { seed, tasks, epochs, batchRows, ...options } = readOptions("clone", given, cloneFields)
  const optimizer = settleRate(options.optimizer, rateRules.cloning, policy)
  if (optimizer.warmup !== undefined && optimizer.warmup > epochs)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `clone: optimizer.warmup is ${optimizer.warmup} epochs, but there are ${epochs}; in cloning it counts epochs, and 0.1 is a ` +
        "tenth of one.",
    )
  tokenizer.checkVocabulary?.(policy.vocabularySize)
  const random = new Random(seed).fork("clone")
  const rows = await expertRows(setup, tasks, random)
  const apart = byTask(rows)
  const loss = crossEntropy()
  const perEpoch = Math.ceil(rows.length / batchRows)
  let step = 0
  for (let epoch = 0; epoch < epochs; epoch++) {
    const started = performance.now()
    let [sum, tokens] = [0, 0]
    for (const [index, batch] of batches(apart, batchRows, random.fork("epoch", epoch)).entries()) {
      const moment = { iteration: epoch, iterations: epochs }
      const draws = random.fork("loss", epoch, index)
      const report = await accumulate(policy, batch, loss, { moment, random: draws, imitation: true, signal })
      const place = { index: step, total: epochs * perEpoch, perIteration: perEpoch }
      await policy.optimizerStep(adamwAt(optimizer, place))
      sum += report.loss * report.tokens
      tokens += report.tokens
      step++
      onProgress?.({ stage: "clone", done: step, total: epochs * perEpoch })
    }
    const seconds = (performance.now() - started) / 1000
    yield { epoch: epoch + 1, epochs, loss: sum / tokens, rows: rows.length, seconds }
  }
}

/** The expert's steps over whole episodes of the training split. */
async function expertRows<Task>(
  { environment, tokenizer, policy, signal }: CloneSetup<Task>,
  tasks: number,
  random: Random,
): Promise<Row[]> {
  const end = tokenizer.eosTokens[0]!
  const rows: Row[] = []
  for (const [index, task] of takeTasks(environment, "train", random.fork("tasks"), tasks).entries()) {
    const expert = { ...rolloutDefaults, environment, task, random: random.fork("environment", index), signal }
    for await (const { messages, reply } of playExpert(expert)) {
      const { tokens, attachments } = await tokenizer.encodeChat(messages)
      const said = stepRow(tokens, Int32Array.from([...tokenizer.encode(reply), end]))
      const row = attachments ? { ...said, attachments } : said
      checkLength(row, policy.maxPositions)
      rows.push(row)
    }
  }
  if (rows.length > 0) return rows
  throw new GigpoError("BAD_ENVIRONMENT", `The expert of ${environment.name} gave no reply in ${tasks} tasks.`)
}

function checkLength({ tokens: { length } }: Row, maxPositions: number): void {
  if (length <= maxPositions) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `A step of the expert has ${length} tokens, but the model takes ${maxPositions}: raise maxPositions or shorten the prompt.`,
  )
}
