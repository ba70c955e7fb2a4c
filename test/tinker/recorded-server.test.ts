import { describe, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { decodeSample, decodeTraining } from "../../src/tinker/results.ts"
import { decodeCall, encodeCall } from "../../src/tinker/training-call.ts"
import { atOnce } from "../../src/util/pace.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"
import { type Exchange, exchanges, reason, there } from "./recorded.ts"
import { key, type Serving, Servings } from "./serving.ts"

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()

/** Phases without faults, which the official client went through from its start on. */
const plain = [
  /^open: /,
  /^train: /,
  /^forward only/,
  /^forward_backward_custom/,
  /^save_state/,
  /^save_weights_and_get/,
]

/** Ids of the recorded server, by what they are called here. */
type Names = Map<string, string>

function translated(text: string, names: Names): string {
  // Longer ones first: one may begin another.
  const known = [...names].sort(([a], [b]) => b.length - a.length)
  return known.reduce((whole, [then, now]) => whole.replaceAll(then, now), text)
}

/** @param seqId of what changes a model: some of what was recorded is left out */
async function send(
  { url }: Serving,
  { method, path, request }: Exchange,
  names: Names,
  seqId: () => number,
): Promise<Response> {
  const { body, body_base64, headers = {} } = request
  const call = body_base64 === undefined ? undefined : atOnce(decodeCall(Buffer.from(body_base64, "base64")))
  const encoded = call && Buffer.from(encodeCall({ ...call, seqId: seqId(), modelId: translated(call.modelId, names) }))
  const fields = (body ?? {}) as Readonly<Record<string, unknown>>
  const json = { ...fields, ...("model_id" in fields && "seq_id" in fields && { seq_id: seqId() }) }
  return await fetch(url + translated(path, names), {
    method,
    headers: {
      accept: headers.accept ?? "application/json",
      "x-api-key": key,
      "content-type": encoded ? "application/x-protobuf" : "application/json",
    },
    ...(method === "POST" && { body: encoded ?? translated(JSON.stringify(json), names) }),
  })
}

async function result({ url }: Serving, request_id: string, accept: string): Promise<Response> {
  for (;;) {
    const headers = { "x-api-key": key, "content-type": "application/json", accept }
    const body = JSON.stringify({ request_id, allow_metadata_only: false })
    const found = await fetch(`${url}/api/v1/retrieve_future`, { method: "POST", headers, body })
    if (/protobuf/.test(found.headers.get("content-type") ?? "")) return found
    if (((await found.clone().json()) as { type?: string }).type !== "try_again") return found
  }
}

describe(`what the official client sends${reason}`, () => {
  it.skipIf(!there)("is taken, and answered with all that it reads", async () => {
    const serving = await servings.serve(doors.directory, { model: "fake/bigram", maxPositions: 64 })
    const names: Names = new Map()
    const seen = new Map<string, number>()
    const recorded = exchanges.filter(({ phase }) => plain.some((pattern) => pattern.test(phase)))
    let sent = 0
    for (const exchange of recorded) {
      const { path, response, n } = exchange
      const kind = path.replace("/api/v1", "").replace(/samplers\/.*/, "samplers")
      if (kind === "/retrieve_future" || response.status !== 200) continue
      if (JSON.stringify(exchange.request.body ?? {}).includes("dimuon")) continue // another optimizer is rejected
      if (/"topk_prompt_logprobs":[1-9]/.test(JSON.stringify(exchange.request.body ?? {}))) continue // rejected by name
      const found = await send(serving, exchange, names, () => ++sent)
      expect(found.status, `exchange ${n} ${kind}: ${await found.clone().text()}`).toBe(200)
      const now = (await found.json()) as Record<string, string>
      const then = (response.body ?? {}) as Record<string, string>
      for (const field of Object.keys(then)) expect(Object.keys(now), `exchange ${n} ${kind}`).toContain(field)
      for (const name of ["session_id", "model_id", "sampling_session_id"])
        if (then[name] && now[name]) names.set(then[name], now[name])
      seen.set(kind, (seen.get(kind) ?? 0) + 1)
      if (now.request_id === undefined) continue
      const bytes = kind === "/forward_backward" || kind === "/asample"
      const settled = await result(serving, now.request_id, bytes ? "application/x-protobuf" : "application/json")
      if (!bytes) {
        const body = (await settled.json()) as Record<string, string>
        expect(body, `exchange ${n} ${kind}`).not.toHaveProperty("error")
        if (body.sampling_session_id) names.set(`session-1:sample:${names.size}`, body.sampling_session_id)
        // What the recorded one was called follows from what it called the model.
        if (body.path) names.set(body.path.replace(/tinker:\/\/[^/]*/, "tinker://session-1:train:0"), body.path)
        continue
      }
      const message = new Uint8Array(await settled.arrayBuffer())
      expect(settled.headers.get("content-type"), `exchange ${n} ${kind}: ${Buffer.from(message)}`).toMatch(/protobuf/)
      if (kind === "/asample") expect(decodeSample(message).sequences.length).toBeGreaterThan(0)
      else expect(decodeTraining(message)).toMatchObject({ metrics: { "loss:sum": expect.any(Number) } })
    }
    expect(Object.fromEntries(seen)).toMatchObject({ "/forward_backward": 8, "/optim_step": 2, "/asample": 4 })
  })
})
