import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, type Served, untilServed } from "../cli/gigpo.ts"
import { makeSmallModel } from "./small-model.ts"

// `gigpo engine` with kill -9 in the middle of what it writes. A hundred times by hand: GIGPO_KILLS=100.

const key = "tml-killed-in-the-middle"

/** What is under way when the engine is killed. */
interface Writing {
  readonly request: "POST /save_weights" | "POST /save_weights_for_sampler" | "DELETE"
  readonly kind: "weights" | "sampler_weights"
  /** Whether weights of this name were saved before. */
  readonly before: boolean
}
const writings: Readonly<Record<string, Writing>> = {
  overwrite: { request: "POST /save_weights", kind: "weights", before: true },
  save: { request: "POST /save_weights", kind: "weights", before: false },
  "overwrite sampler": { request: "POST /save_weights_for_sampler", kind: "sampler_weights", before: true },
  remove: { request: "DELETE", kind: "weights", before: true },
  "save sampler": { request: "POST /save_weights_for_sampler", kind: "sampler_weights", before: false },
  "remove sampler": { request: "DELETE", kind: "sampler_weights", before: true },
}
const names = Object.keys(writings)
const kills = Number(process.env.GIGPO_KILLS ?? names.length)

describe.skipIf(!built)("an engine that is killed while it writes (needs dist: npm run build:ts)", () => {
  let folder: string
  let model: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-killed-"))
    model = await makeSmallModel(folder)
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function client(served: Served) {
    const post = async (path: string, body: object, method = "POST") => {
      const response = await fetch(`${served.address}/api/v1${path}`, {
        ...{ method, headers: { "x-api-key": key, "content-type": "application/json" } },
        ...(method === "POST" && { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    const result = async (path: string, body: object) => {
      const { request_id } = (await post(path, body)).body
      return (await post("/retrieve_future", { request_id })).body
    }
    const { session_id } = (await post("/create_session", {})).body
    return { post, result, session_id }
  }
  const serve = () =>
    untilServed(["engine", model, "--name", "small", "--device", "cpu", "--checkpoints", join(folder, "kept")], {
      ...{ cwd: folder, env: { GIGPO_API_KEY: key } },
    })

  it(`has the earlier weights or the new ones, all of them, after each of ${kills} kills`, async () => {
    const found = { kept: 0, none: 0 }
    for (let nth = 0; nth < kills; nth++) {
      const [first, what] = [await serve(), names[nth % names.length]!]
      const { request, kind, before } = writings[what]!
      const { post, result, session_id } = await client(first)
      const asked = { session_id, base_model: "small", lora_config: { rank: 4, seed: nth } }
      const { model_id } = (await result("/create_model", asked)) as { model_id: string }
      const path = kind === "weights" ? "/save_weights" : "/save_weights_for_sampler"
      const weights = `tinker://${model_id}/${kind}/latest`
      let seq_id = 0
      const save = () => result(path, { model_id, seq_id: ++seq_id, path: "latest", overwrite: true })
      const train = async () => {
        const tokens = [5, 6, 7, 8]
        const datum = {
          model_input: { chunks: [{ type: "encoded_text", tokens }] },
          loss_fn_inputs: {
            target_tokens: { data: [6, 7, 8, 9], dtype: "int64", shape: [4] },
            weights: { data: [1, 1, 1, 1], dtype: "float32", shape: [4] },
          },
        }
        const forward_backward_input = { data: [datum], loss_fn: "cross_entropy" }
        await result("/forward_backward", { model_id, seq_id: ++seq_id, forward_backward_input })
        await result("/optim_step", { model_id, seq_id: ++seq_id, adam_params: { learning_rate: 0.01 } })
      }
      if (before) expect(await save()).toHaveProperty("path", weights)
      await train()
      const writing = (async () => {
        for (;;) {
          if (request === "DELETE") {
            const id = encodeURIComponent(model_id)
            await post(`/training_runs/${id}/checkpoints/${kind}/latest`, {}, "DELETE")
          }
          await save()
          if (request !== "DELETE" && before) await train()
        }
      })().catch(() => {})
      await wait(Math.random() * (nth % 2 === 0 ? 60 : 300))
      first.kill("SIGKILL")
      await Promise.all([first.ended, writing])

      const second = await serve()
      try {
        const next = await client(second)
        const { status } = await next.post("/weights_info", { tinker_path: weights })
        // Weights that were there stay there, unless they were being deleted.
        if (request !== "DELETE" && before) expect([what, status]).toEqual([what, 200])
        expect([200, 404]).toContain(status)
        const place = join(folder, "kept", encodeURIComponent(model_id), kind, "latest")
        if (status === 200) {
          // Loading compares every file with its SHA-256, moments included.
          const load = { session_id: next.session_id, path: weights, optimizer: true }
          expect(await next.result("/load_weights", load)).toMatchObject({ path: weights })
          await expect.poll(() => readdir(place)).toHaveLength(2)
        } else await expect.poll(() => readdir(place).catch(() => [])).toEqual([])
        found[status === 200 ? "kept" : "none"]++
      } finally {
        second.kill("SIGKILL")
        await second.ended
      }
    }
    expect(found.kept + found.none).toBe(kills)
    expect(found.kept).toBeGreaterThan(0)
  })
})
