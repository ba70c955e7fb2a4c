import { readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect, it } from "vitest"
import { compareFile, topics } from "./run.ts"
import type { Vector } from "./topic.ts"

// Worked out a second time, in Python: scripts/fixtures/make_vectors.py.
const own = fileURLToPath(new URL("../fixtures/vectors/baselines.json", import.meta.url))
const vectors: Record<string, Vector> = JSON.parse(readFileSync(own, "utf8"))
const names = Object.keys(topics)

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-vectors-"))
})
afterAll(() => rm(folder, { recursive: true }))

const compareVectors = async (changed: Record<string, unknown>) => {
  const path = join(folder, "changed.json")
  await writeFile(path, JSON.stringify(changed))
  return compareFile(path)
}

it("agrees with a second computation, in every topic", async () => {
  const reports = await compareFile(own)
  expect(reports.map(({ topic }) => topic).sort()).toEqual([...names].sort())
  for (const { topic, compared, ...rest } of reports) {
    expect({ topic, ...rest }).toEqual({ topic, differ: 0, first: [], failed: [] })
    expect(compared).toBeGreaterThan(20)
  }
})

it("covers both sides of every bound: some but not all tokens of a topic count", () => {
  const counts = Object.entries(vectors).flatMap(([key, { expected }]) =>
    Object.entries(expected)
      .filter(([name]) => name.endsWith("_fraction"))
      .map(([name, share]) => [`${key.split("/")[0]} ${name}`, share as number] as const),
  )
  expect(counts.length).toBeGreaterThan(0)
  for (const [counted] of counts) {
    const shares = counts.filter(([other]) => other === counted).map(([, share]) => share)
    expect([counted, shares.some((share) => share > 0), shares.some((share) => share < 1)]).toEqual([
      counted,
      true,
      true,
    ])
  }
})

/** The first number that the mask keeps, off by ten times what is allowed. */
function off(value: unknown, mask?: readonly unknown[]): unknown {
  if (!Array.isArray(value)) return (value as number) + 1e-5 * Math.max(1, Math.abs(value as number))
  const at = Math.max(mask?.indexOf(1) ?? 0, 0)
  return value.with(at, off(value[at], mask?.[at] as readonly unknown[] | undefined))
}

it.each(names)("sees one number of %s that is off by 1e-5", async (topic) => {
  const { inputs, expected, ...rest } = vectors[topic]!
  const [name, right] = Object.entries(expected)[0]!
  const changed = { ...rest, inputs, expected: { ...expected, [name]: off(right, inputs.mask as readonly unknown[]) } }
  const [report] = await compareVectors({ _note: "", [topic]: changed })
  expect(report).toMatchObject({ topic, differ: 1, failed: [] })
  expect(report!.first[0]!.where).toContain(`${topic} ${name}`)
})

it("counts nothing that the mask leaves out", async () => {
  const vector = structuredClone(vectors.gae!)
  const row = (vector.inputs.mask as number[][]).findIndex((keeps) => keeps.includes(0))
  const gap = (vector.inputs.mask as number[][])[row]!.indexOf(0)
  ;(vector.expected.advantage as number[][])[row]![gap] = 99
  expect((await compareVectors({ gae: vector }))[0]).toMatchObject({ differ: 0, failed: [] })
})

it("fails where a topic is unknown or a vector cannot be computed", async () => {
  const [unknown, inherited, refused] = await compareVectors({
    chess: vectors.grpo,
    toString: vectors.grpo,
    kl: { ...vectors.kl, params: { estimator: "k9" } },
  })
  expect(unknown).toMatchObject({ compared: 0, failed: ['chess: there is no topic "chess"'] })
  expect(inherited!.failed).toEqual(['toString: there is no topic "toString"'])
  expect(refused).toMatchObject({ topic: "kl", compared: 0, failed: [expect.stringContaining("kl: ")] })
})
