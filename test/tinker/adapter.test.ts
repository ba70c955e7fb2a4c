import { readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { pack } from "tar-stream"
import { expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { stepSequence } from "../../src/engine/sequence.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { byRow } from "../engine/by-row.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"
import { lora, Servings } from "./serving.ts"

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()
const rows = [stepSequence(Int32Array.of(5, 6, 7), Int32Array.of(8, 9, 10))]

it("an adapter comes home in PEFT's layout, and says the same there", async () => {
  const serving = await servings.serve(doors.directory)
  const engine = await serving.connect({ rank: 4 })
  await engine.forwardBackward(rows, { kind: "cross-entropy" })
  await engine.optimizerStep({ learningRate: 1e-2 })
  const [told] = byRow(rows, await engine.logProbs(rows))
  const home = join(doors.folder, "adapter")
  await engine.saveAdapter(home)
  expect((await readdir(home)).filter((name) => name.startsWith("adapter")).sort()).toEqual([
    "adapter_config.json",
    "adapter_model.safetensors",
  ])
  const options = { device: "cpu", lora: { ...lora, rank: 4, seed: 9 } } as const
  await using policy = await NativePolicy.open(doors.directory, options)
  await policy.loadAdapter(home)
  const [found] = byRow(rows, await policy.logProbs(rows))
  for (const [i, value] of found!.logProbs.entries()) expect(value).toBeCloseTo(told!.logProbs[i]!, 5)
  const before = serving.asked.length
  await expect(engine.saveAdapter(home)).rejects.toMatchObject({ code: "FILE_EXISTS" })
  expect(serving.asked.slice(before)).not.toContain("/save_weights_for_sampler")
  await writeFile(join(home, "adapter_config.json"), "{}")
  await expect(engine.saveAdapter(home, { overwrite: true })).rejects.toMatchObject({ code: "FILE_EXISTS" }) // it was changed
  const whole = await (await servings.serve(doors.directory)).connect({ rank: 0 })
  await expect(whole.saveAdapter(join(doors.folder, "none"))).rejects.toThrow(/engine.rank/)
})

async function archive(files: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>> {
  const made = pack()
  for (const [name, text] of Object.entries(files)) made.entry({ name }, text)
  made.finalize()
  const pieces: Buffer[] = []
  for await (const piece of made) pieces.push(piece)
  return new Uint8Array(Buffer.concat(pieces))
}

it("archives of other servers: packed or not, in folders, with less, or broken", async () => {
  const config = { "adapter_config.json": "{}" }
  const both = { ...config, "adapter_model.safetensors": "weights" }
  const inside = Object.fromEntries(Object.entries(both).map(([name, text]) => [`../out/${name}`, text]))
  const cases: readonly (readonly [Uint8Array<ArrayBuffer>, RegExp | undefined])[] = [
    [await archive({ ...both, "README.md": "of an adapter" }), undefined],
    [new Uint8Array(gzipSync(await archive(both))), undefined],
    [await archive(inside), undefined],
    [await archive(config), /it contains adapter_config.json, not/],
    [new Uint8Array(gzipSync(await archive(both))).slice(0, 60), /cannot be read|it contains/],
    [new Uint8Array(2000).fill(7), /cannot be read/],
    [new Uint8Array(0), /nothing/],
  ]
  for (const [at, [bytes, message]] of cases.entries()) {
    const serving = await servings.serve(doors.directory, {}, (path) =>
      path.endsWith("/archive") ? { kind: "bytes", bytes } : undefined,
    )
    const engine = await serving.connect({ rank: 4 })
    const home = join(doors.folder, `other-${at}`)
    if (message) await expect(engine.saveAdapter(home)).rejects.toMatchObject({ code: "ENGINE_REJECTED", message })
    else {
      await engine.saveAdapter(home)
      expect(await readFile(join(home, "adapter_model.safetensors"), "utf8")).toBe("weights")
    }
    expect((await readdir(doors.folder)).includes(`other-${at}`)).toBe(message === undefined)
  }
})

it("an abort ends what comes down, and leaves nothing", async () => {
  const abort = new AbortController()
  const why = new Error("enough")
  const serving = await servings.serve(doors.directory, {}, (path) => {
    if (!path.endsWith("/archive")) return undefined
    abort.abort(why)
    return { kind: "endless" }
  })
  const engine = await serving.connect({ rank: 4 })
  const home = join(doors.folder, "aborted")
  await expect(engine.saveAdapter(home, { signal: abort.signal })).rejects.toBe(why)
  expect(await readdir(doors.folder)).not.toContain("aborted")
})

it("a server that gives no archives says so", async () => {
  const serving = await servings.serve(doors.directory, {}, (path) =>
    path.endsWith("/archive") ? { kind: "status", status: 404 } : undefined,
  )
  const engine = await serving.connect({ rank: 4 })
  await expect(engine.saveAdapter(join(doors.folder, "no"))).rejects.toThrow(
    /does not offer an archive of tinker:.*404/,
  )
  const address = await fetch(`${serving.url}/api/v1/downloads/00000000-0000-0000-0000-000000000000`)
  expect(address.status).toBe(404)
})
