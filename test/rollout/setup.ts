import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import type { RolloutSetup } from "../../src/rollout/rollout.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { trainByteLevelTokenizer } from "../../src/tokenizer/train.ts"
import { writeTokenizer } from "../../src/tokenizer/write.ts"
import { Random } from "../../src/util/random.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { FakePolicy } from "./fake-policy.ts"

/** A byte tokenizer for all tests of the file that calls this. */
export function useTokenizer(): { readonly get: () => Tokenizer } {
  let [folder, tokenizer]: [string | undefined, Tokenizer | undefined] = [undefined, undefined]
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-rollout-"))
    await writeTokenizer(folder, await trainByteLevelTokenizer([], { vocabularySize: 259 }))
    tokenizer = await Tokenizer.open(folder)
  })
  afterAll(async () => {
    await tokenizer?.dispose()
    if (folder) await rm(folder, { recursive: true })
  })
  return { get: () => tokenizer! }
}

/** After each test of the file that calls this the process must not have been told of any such event. */
export function expectNo(event: "unhandledRejection" | "warning"): void {
  let told: unknown[]
  const note = (what: unknown) => told.push(what)
  beforeEach(() => {
    told = []
    process.on(event, note)
  })
  afterEach(async () => {
    await sleep(1)
    process.off(event, note)
    expect(told).toEqual([])
  })
}

export function takeDoors(count: number): DoorsTask[] {
  return [...doorsEnvironment({ count }).tasks("train", new Random(1))]
}

export interface DoorsSetup extends RolloutSetup<DoorsTask> {
  readonly policy: FakePolicy
  readonly environment: Environment<DoorsTask>
  readonly tasks: readonly DoorsTask[]
}

/** What every test sets, and its changes. */
export function rolloutSetup(
  tokenizer: Tokenizer,
  { policy = new FakePolicy(tokenizer), ...changes }: Partial<DoorsSetup> = {},
): DoorsSetup {
  return {
    tokenizer,
    environment: doorsEnvironment(),
    tasks: takeDoors(4),
    groupSize: 4,
    random: new Random(7),
    concurrency: 16,
    maxPositions: 200,
    maxCompletionTokens: 4,
    maxSteps: 50,
    temperature: 1,
    environmentTimeout: 30,
    ...changes,
    policy,
  }
}
