import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { AdamWParameters, OptimizerStepStatistics, SamplerSnapshot, Snapshots } from "../../src/engine/engine.ts"
import { TablePolicy } from "./table-policy.ts"

/** A table whose weights of a moment can be sampled from while it learns. */
export class SnapshotPolicy extends TablePolicy {
  /** Steps of the weights of each snapshot that was taken. */
  readonly taken: number[] = []
  /** Steps of the weights of each sample of a snapshot. */
  readonly sampled: number[] = []
  /** Steps of the weights of each call of a snapshot for log-probabilities. */
  readonly scored: number[] = []
  /** Snapshots that are not disposed of. */
  open: number = 0
  /** Called before an optimizer step. */
  beforeStep: () => unknown = () => {}

  readonly snapshots: Snapshots = {
    take: async () => {
      this.taken.push(this.steps)
      return this.#snapshot(this.logits.slice(), this.steps)
    },
    open: async (handle, directory) => {
      const logits = new Float64Array((await readFile(join(directory, "snapshot.bin"))).slice().buffer)
      return this.#snapshot(logits, (handle as { steps: number }).steps)
    },
  }

  override async optimizerStep(step: AdamWParameters): Promise<OptimizerStepStatistics> {
    await this.beforeStep()
    return await super.optimizerStep(step)
  }

  #snapshot(logits: Float64Array, steps: number): SamplerSnapshot {
    const table = new TablePolicy()
    table.logits = logits
    this.open++
    return {
      ...{ vocabularySize: table.vocabularySize, maxPositions: table.maxPositions, deterministic: true },
      sample: (request) => {
        this.sampled.push(steps)
        return table.sample(request)
      },
      logProbs: (rows, options) => {
        this.scored.push(steps)
        return table.logProbs(rows, options)
      },
      save: async (directory) => {
        await writeFile(join(directory, "snapshot.bin"), new Uint8Array(logits.buffer))
        return { steps }
      },
      [Symbol.asyncDispose]: async () => {
        this.open--
      },
    }
  }
}
