import { mkdtemp, readdir, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, it } from "vitest"
import type { TinkerServerOptions } from "../../src/engine-server/tinker-server.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"
import { key, Servings } from "./serving.ts"

// What clients of `gigpo engine` may cost its disk, and what is reported to them.

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()

/** A model of an engine whose checkpoints lie in `checkpoints`. */
async function model(checkpoints: string, options: Partial<TinkerServerOptions> = {}) {
  const { url } = await servings.serve(doors.directory, { checkpoints, ...options })
  const call = async (method: string, path: string, body?: object) => {
    const headers = { "x-api-key": key, "content-type": "application/json" }
    const response = await fetch(`${url}/api/v1${path}`, { method, headers, body: body ? JSON.stringify(body) : null })
    return (await response.json()) as Record<string, string>
  }
  const result = async (path: string, body: object) =>
    await call("POST", "/retrieve_future", { request_id: (await call("POST", path, body)).request_id })
  const { session_id } = await call("POST", "/create_session", {})
  const { model_id } = await result("/create_model", { session_id, base_model: "tiny", lora_config: { rank: 2 } })
  let seq_id = 1
  return {
    save: (path: string, overwrite = false) => result("/save_weights", { model_id, seq_id: seq_id++, path, overwrite }),
    remove: (name: string) =>
      call("DELETE", `/training_runs/${encodeURIComponent(model_id!)}/checkpoints/weights/${name}`),
  }
}

const folder = async () => await mkdtemp(join(doors.folder, "kept-"))
async function filesIn(directory: string) {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return { files, bytes: (await Promise.all(files.map((file) => stat(file)))).reduce((sum, { size }) => sum + size, 0) }
}

it("checkpoints together take no more bytes than they may, and one that would is not kept", async () => {
  const measured = await folder()
  await (await model(measured)).save("one")
  const { bytes } = await filesIn(measured)
  const checkpoints = await folder()
  const { save, remove } = await model(checkpoints, { checkpointBytes: Math.ceil(1.5 * bytes) })
  expect(await save("one")).toMatchObject({ path: expect.stringMatching(/\/weights\/one$/) })
  const before = (await filesIn(checkpoints)).files.length
  const refused = { error: expect.stringMatching(/the limit is 1 MiB.*--checkpoint-size/), category: "user" }
  expect(await save("two")).toEqual(refused)
  expect((await filesIn(checkpoints)).files).toHaveLength(before)
  // The new version takes the place of the one before.
  expect(await save("one", true)).toMatchObject({ path: expect.stringMatching(/\/weights\/one$/) })
  expect(await remove("one")).toEqual({ status: "deleted" })
  expect(await save("two")).toMatchObject({ path: expect.stringMatching(/\/weights\/two$/) })
})

it("a failure of the disk is reported without the path, which the log has", async () => {
  const file = join(await folder(), "no-folder")
  await writeFile(file, "")
  const faults: unknown[] = []
  const { save } = await model(join(file, "kept"), { onError: (error) => faults.push(error) })
  expect(await save("one")).toEqual({
    error:
      "The engine cannot use its files: a part of the path is a file, not a folder; check the path. The server's log names the file.",
    category: "user",
  })
  expect(faults.at(-1)).toMatchObject({ code: "IO", message: expect.stringContaining(file) })
})
