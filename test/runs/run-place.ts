import { mkdtemp, readdir, readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect } from "vitest"
import { Run, type RunOptions } from "../../src/runs/run.ts"
import { FakePolicy } from "../training/fake-policy.ts"

export const config = {
  model: "m",
  seed: 3,
  training: { groups: 4, iterations: 10, loss: { clipDual: Number.POSITIVE_INFINITY } },
}

/** A folder of its own, and in it a place for a run that is not there yet. */
export async function placeForRun(): Promise<{ folder: string; directory: string }> {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-run-"))
  return { folder, directory: join(folder, "runs", "one") }
}

/** A run whose iterations up to `iteration` are logged, with checkpoints of some of them. */
export async function putRun(directory: string, iteration: number, checkpoints: readonly number[]): Promise<void> {
  const run = await Run.open(directory, config)
  await run.begin()
  const policy = new FakePolicy()
  for (let i = 1; i <= iteration; i++) {
    await run.log({ iteration: i, metrics: { "loss/policy": i / 10 } })
    policy.weights = Float32Array.of(i, i, i)
    policy.moments = Float32Array.of(-i, -i, -i)
    policy.steps = 2 * i
    if (checkpoints.includes(i)) await run.saveCheckpoint(i, policy, 2)
  }
  await run.close()
}

/** Every file below a folder, with what it holds. */
export async function snapshot(root: string): Promise<Record<string, string>> {
  const entries = await readdir(root, { withFileTypes: true, recursive: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(await Promise.all(files.map(async (file) => [file, await readFile(file, "latin1")])))
}

/** Opening it fails so, and nothing in its place has changed. */
export async function refused(
  directory: string,
  options: RunOptions,
  code: string,
  message: RegExp,
  now: object = config,
): Promise<void> {
  const folder = dirname(dirname(directory))
  const before = await snapshot(folder)
  await expect(Run.open(directory, now, options)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  })
  expect(await snapshot(folder)).toEqual(before)
}

export async function loggedIterations(directory: string): Promise<number[]> {
  const text = await readFile(join(directory, "metrics.jsonl"), "utf8")
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line).iteration)
}
