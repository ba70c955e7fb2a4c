import { checkWhole } from "../engine/check-arguments.ts"
import type { Row } from "../engine/engine.ts"
import type { NativePolicy } from "../engine/native/native-policy.ts"
import type { Environment } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import { Random } from "../random.ts"
import { playExpert } from "../rollout/expert.ts"
import type { Tokenizer } from "../tokenizer/tokenizer.ts"
import { checkOptimizer } from "./check-options.ts"
import { optimizerDefaults, rolloutDefaults } from "./defaults.ts"
import { takeTasks } from "./evaluate.ts"
import type { CloneOptions } from "./options.ts"
import type { Progress } from "./progress.ts"
import { batches } from "./rows.ts"
import { learningRate } from "./schedule.ts"

export interface CloneSetup {
  readonly policy: NativePolicy
  readonly tokenizer: Tokenizer
  readonly environment: Environment
  readonly options?: CloneOptions
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
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
 * something sensible. Each `next()` is one pass over the expert's steps.
 */
export async function* clone(setup: CloneSetup): AsyncGenerator<CloneReport, void, undefined> {
  const { policy, tokenizer, signal, onProgress } = setup
  const { seed = 0, tasks = 1000, epochs = 10, batchRows = 64 } = setup.options ?? {}
  const adamw = { ...optimizerDefaults, ...setup.options?.optimizer }
  checkOptimizer(adamw)
  checkWhole(epochs, "epochs")
  checkWhole(batchRows, "batchRows")
  tokenizer.checkVocabulary(policy.config.vocabularySize)
  const random = new Random(seed).fork("clone")
  const rows = await expertRows(setup, tasks, random)
  const apart = rows.map((row) => [row])
  const total = epochs * Math.ceil(rows.length / batchRows)
  let step = 0
  for (let epoch = 0; epoch < epochs; epoch++) {
    const started = performance.now()
    let [loss, tokens] = [0, 0]
    for (const batch of batches(apart, batchRows, random.fork("epoch", epoch))) {
      const report = await policy.forwardBackward(batch, { kind: "clone" }, { ...(signal && { signal }) })
      await policy.optimizerStep({ ...adamw, learningRate: learningRate(step, total, adamw) })
      loss += report.loss * report.tokens
      tokens += report.tokens
      onProgress?.({ stage: "clone", done: ++step, total })
    }
    const seconds = (performance.now() - started) / 1000
    yield { epoch: epoch + 1, epochs, loss: loss / tokens, rows: rows.length, seconds }
  }
}

/** The expert's steps over whole episodes of the training split. */
async function expertRows(setup: CloneSetup, count: number, random: Random): Promise<Row[]> {
  const { environment, tokenizer, policy, signal } = setup
  const end = tokenizer.eosTokens[0]!
  const rows: Row[] = []
  for (const [index, task] of takeTasks(environment, "train", random.fork("tasks"), count).entries()) {
    const expert = { ...rolloutDefaults, environment, task, random: random.fork("environment", index) }
    for await (const { messages, reply } of playExpert({ ...expert, ...(signal && { signal }) })) {
      const row = {
        prompt: await tokenizer.encodeChat(messages),
        reply: Int32Array.from([...tokenizer.encode(reply), end]),
      }
      checkLength(row, policy.maxPositions)
      rows.push(row)
    }
  }
  if (rows.length > 0) return rows
  throw new GigpoError("BAD_ENVIRONMENT", `The expert of ${environment.name} gave no reply in ${count} tasks.`)
}

function checkLength({ prompt, reply }: Row, maxPositions: number): void {
  const length = prompt.length + reply.length
  if (length <= maxPositions) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `A step of the expert has ${length} tokens, but the model takes ${maxPositions}: raise maxPositions or shorten the prompt.`,
  )
}
