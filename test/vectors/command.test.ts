import { spawnSync } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const program = [
  "--import",
  new URL("../../scripts/typescript.mjs", import.meta.url).href,
  fileURLToPath(new URL("compare-files.ts", import.meta.url)),
]
const own = fileURLToPath(new URL("../fixtures/vectors/baselines.json", import.meta.url))

const vectors = (...files: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...program, ...files], { encoding: "utf8" })
  return { status, stdout, stderr }
}

describe("npm run vectors", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-vectors-"))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const write = async (name: string, content: unknown) => {
    await writeFile(join(folder, name), typeof content === "string" ? content : JSON.stringify(content))
    return join(folder, name)
  }

  it("ends with 0 where nothing differs", () => {
    const { status, stdout } = vectors(own)
    expect(stdout).toMatch(/^in all: compared \d{4} differ 0\n$/m)
    expect(status).toBe(0)
  })

  it("ends with 1 on a difference, on an unknown topic and where there is nothing to compare", async () => {
    const { adaptive_kl } = JSON.parse(await readFile(own, "utf8"))
    const { weight } = adaptive_kl.expected
    const expected = { weight: [weight[0] + 1e-5, ...weight.slice(1)] }
    const different = vectors(await write("different.json", { adaptive_kl: { ...adaptive_kl, expected } }))
    expect(different).toMatchObject({ status: 1, stdout: expect.stringContaining("adaptive_kl weight[0]: expected") })
    const unknown = vectors(await write("unknown.json", { adaptive_kl, chess: adaptive_kl }))
    expect(unknown).toMatchObject({ status: 1, stdout: expect.stringContaining('there is no topic "chess"') })
    expect(unknown.stdout).toContain(`compared ${weight.length} differ 0, not compared 1`)
    expect(vectors(await write("empty.json", {})).status).toBe(1)
  })

  it("ends with 2 for a file that cannot be read, and without one", async () => {
    for (const path of [join(folder, "absent.json"), await write("broken.json", "{")])
      expect(vectors(path)).toMatchObject({
        status: 2,
        stderr: expect.stringContaining(`${path} is no file of vectors`),
      })
    expect(vectors()).toMatchObject({ status: 2, stderr: expect.stringContaining("usage:") })
  })
})
