import { describe, expect, it } from "vitest"
import type { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { FrozenPolicies } from "../../src/engine-server/frozen-policies.ts"
import { type Result, Results } from "../../src/engine-server/results.ts"
import type { Session } from "../../src/engine-server/session.ts"
import { Sessions } from "../../src/engine-server/sessions.ts"
import { Slots } from "../../src/engine-server/slots.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"
import { key, type Serving, Servings } from "./serving.ts"

// What `gigpo engine` gives back when a session is over, and how much one session may hold.

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()

async function post(serving: Serving, path: string, body: object, headers: object = {}) {
  const response = await fetch(`${serving.url}/api/v1${path}`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, string> }
}
async function sampling(serving: Serving) {
  const { session_id } = (await post(serving, "/create_session", {})).body
  const asked = { session_id, base_model: "tiny", sampling_session_seq_id: 0 }
  const { sampling_session_id } = (await post(serving, "/create_sampling_session", asked)).body
  return { session_id, sampling_session_id }
}
const sample = (sampling_session_id: string | undefined, num_samples: number, max_tokens: number, params = {}) => ({
  ...{ sampling_session_id, num_samples, prompt: { chunks: [{ type: "encoded_text", tokens: [5, 6] }] } },
  sampling_params: { max_tokens, ...params },
})

describe("a session that is over", () => {
  let numbers = 0
  it("by its client's word or by silence has no work and no results any more", async () => {
    for (const end of ["finish", "silence"]) {
      let base: NativePolicy | undefined
      const serving = await servings.serve(doors.directory, {
        silence: 5,
        openFrozen: async () => {
          const { NativePolicy } = await import("../../src/engine/native/native-policy.ts")
          base = await NativePolicy.open(doors.directory, { device: "cpu", threads: 2, training: false })
          return base
        },
      })
      const [mine, other] = [await sampling(serving), await sampling(serving)]
      const asked = Array.from({ length: 20 }, () => ({
        ...sample(mine.sampling_session_id, 4096, 50),
        seq_id: numbers++,
      }))
      let request_id = ""
      for (const one of asked) request_id = (await post(serving, "/asample", one)).body.request_id!
      const waiting = post(serving, "/retrieve_future", { request_id }).then(({ body }) => body)
      if (end === "finish") await post(serving, `/sessions/${mine.session_id}/finish`, {})
      else {
        // A question that waits is no new sign of life; the other client's heartbeats are of no help.
        let over: unknown
        void waiting.then((answer) => {
          over = answer
        })
        while (!over) {
          await post(serving, "/session_heartbeat", { session_id: other.session_id })
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
      }
      expect(await waiting).toEqual({ error: "The session has ended.", category: "user" })
      expect((await post(serving, "/retrieve_future", { request_id })).status).toBe(404)
      expect((await post(serving, "/asample", sample(mine.sampling_session_id, 1, 1))).status).toBe(404)
      const sampled = () => base?.statistics.sampledTokens ?? 0
      const before = sampled()
      const next = (await post(serving, "/asample", sample(other.sampling_session_id, 1, 2))).body
      expect((await post(serving, "/retrieve_future", next)).body).toHaveProperty("sequences")
      await new Promise((resolve) => setTimeout(resolve, 300))
      // Nothing of the 4,096 × 40 tokens is sampled any more.
      expect(sampled() - before).toBeLessThan(4096)
    }
  })

  it("frees a model that was still being opened", async () => {
    const opened: NativePolicy[] = []
    let opening = () => {}
    const began = new Promise<void>((resolve) => {
      opening = resolve
    })
    let go = () => {}
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const { NativePolicy } = await import("../../src/engine/native/native-policy.ts")
    const serving = await servings.serve(doors.directory, {
      models: 1,
      open: async ({ rank, seed }) => {
        opening()
        await gate
        const policy = await NativePolicy.open(doors.directory, { device: "cpu", lora: { alpha: 32, rank, seed } })
        opened.push(policy)
        return policy
      },
    })
    const make = async () => {
      const { session_id } = (await post(serving, "/create_session", {})).body
      const made = await post(serving, "/create_model", { session_id, base_model: "tiny", lora_config: { rank: 2 } })
      return { session_id, ...made }
    }
    const { session_id } = await make()
    await began
    await post(serving, `/sessions/${session_id}/finish`, {})
    go()
    while (opened.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    await expect
      .poll(() =>
        opened[0]!.sample({ prompt: Int32Array.of(1), maxTokens: 1, stopTokens: [], key: [0, 0] }).then(
          () => "open",
          (error) => error.code,
        ),
      )
      .toBe("DISPOSED")
    // Its place is free again, once its memory is.
    let again: Awaited<ReturnType<typeof make>> | undefined
    await expect
      .poll(async () => {
        again = await make()
        return again.status
      })
      .toBe(200)
    expect((await post(serving, "/retrieve_future", { request_id: again!.body.request_id })).body).toHaveProperty(
      "model_id",
    )
  })
})

describe("requests that ask for too much are rejected:", () => {
  it("stop tokens, and sessions", async () => {
    const serving = await servings.serve(doors.directory)
    const { sampling_session_id } = await sampling(serving)
    const refused = async (asked: object) => await post(serving, "/asample", asked)
    const stops = { stop: Array.from({ length: 65 }, (_, i) => i) }
    expect(await refused(sample(sampling_session_id, 1, 1, stops))).toMatchObject({ status: 400 })
    const key = "k".repeat(300)
    expect(await post(serving, "/create_session", {}, { "x-idempotency-key": key })).toMatchObject({ status: 400 })
    // Sessions that are in use stay, those that were never used give way to new ones.
    for (let i = 0; i < 62; i++) await sampling(serving)
    const unused = (await post(serving, "/create_session", {})).body.session_id
    expect(await post(serving, "/session_heartbeat", { session_id: unused })).toMatchObject({ status: 200 })
    await sampling(serving)
    expect(await post(serving, "/session_heartbeat", { session_id: unused })).toMatchObject({ status: 410 })
    const { status, body } = await post(serving, "/create_session", {})
    expect([status, body.detail]).toEqual([429, expect.stringMatching(/64 sessions/)])
    expect((await post(serving, "/asample", sample(sampling_session_id, 1, 1))).status).toBe(200)
  })
})

describe("results of a session", () => {
  const json: Result = { kind: "json", body: {} }
  const setup = (mayHold = (_: number) => true) =>
    new Results({ prefix: "s", departures: new Set(), onError: () => {}, mayHold })
  const never = new AbortController().signal

  it("are counted, and dropped with the session", async () => {
    const results = setup()
    const ids = Array.from({ length: 16_384 }, () => results.take("x", async () => json, { holds: 10 }))
    expect(() => results.take("x", async () => json)).toThrow(/not fetched/)
    await results.answer(ids[0]!, false, never)
    results.take("x", async () => json)
    expect(results.size).toBe(16_385)
    results.close()
    expect([results.size, results.bytes]).toEqual([0, 0])
    await expect(results.answer(ids[1]!, false, never)).rejects.toMatchObject({ status: 404 })
  })

  it("take a share of the memory, and what was fetched gives way to what is newer", async () => {
    const large = 16 * 2 ** 20
    const training = async (): Promise<Result> => ({
      kind: "training",
      result: { logProbs: [new Float32Array(large / 4)], metrics: {} },
    })
    const results: Results = setup((bytes) => results.bytes + bytes < 3 * large)
    const first = results.take("x", training)
    const second = results.take("x", training)
    await results.answer(first, true, never)
    await results.answer(second, true, never)
    expect(results.bytes).toBe(0)
    for (let i = 0; i < 8; i++) await results.answer(results.take("x", training), true, never)
    // At most 64 MiB of results that were fetched.
    expect(results.size).toBeLessThanOrEqual(4)
    const waiting = results.take("x", () => new Promise(() => {}), { holds: 2 * large })
    expect(() => results.take("x", training, { holds: large })).toThrow(/memory/)
    expect(waiting).toMatch(/^s:x-/)
    results.close()
  })

  it("are the same for the same request", () => {
    const results = setup()
    let begun = 0
    const start = async () => {
      begun++
      return json
    }
    expect(results.take("x", start, { same: "1" })).toBe(results.take("x", start, { same: "1" }))
    expect(begun).toBe(1)
    results.close()
  })
})

it("sessions leave nothing behind, however many there were", async () => {
  const sessions = new Sessions({ silence: 300, departures: new Set(), onError: () => {} })
  const { client } = sessions.begin("", "first")
  for (let i = 0; i < 1000; i++) {
    const session = sessions.begin("", `key ${i}`)
    expect(sessions.begin("", `key ${i}`)).toBe(session)
    for (let number = 0; number < 1100; number++) session.sampling(number, { path: undefined })
    expect(session.samplingOf(0)).toBeUndefined()
    expect(session.samplingOf(1099)).toBeDefined()
    session.results.take("x", async () => ({ kind: "json", body: {} }))
    await sessions.end(session)
    expect([session.results.size, session.unused]).toEqual([0, true])
  }
  expect(sessions.size).toBe(1)
  expect(sessions.begin("", "key 5").client).toBe(client + 1001)
  await sessions.dispose()
})

it("an address has half of the sessions at most, and an equal share of the memory however many it has", async () => {
  const sessions = new Sessions({ silence: 300, departures: new Set(), onError: () => {} })
  const begin = (address: string) => {
    const session = sessions.begin(address)
    session.sampling(0, { path: undefined })
    return session
  }
  const hold = (session: Session, mebibytes: number) => {
    const id = session.results.take("x", () => new Promise(() => {}), { holds: mebibytes * 2 ** 20 - 2048 })
    return id.length > 0
  }
  const many = Array.from({ length: 64 }, () => begin("10.0.0.1"))
  expect(() => begin("10.0.0.1")).toThrow(/64 sessions of this address/)
  for (const session of many) hold(session, 1)
  const other = begin("10.0.0.2")
  expect(new Set(many.map(({ group }) => group)).size).toBe(1)
  expect(other.group).not.toBe(many[0]!.group)
  expect(hold(other, 1)).toBe(true)
  expect(hold(other, 1023)).toBe(true) // half of the 2 GiB
  expect(() => hold(other, 1)).toThrow(/memory/)
  expect(hold(many[0]!, 15)).toBe(true) // a 64th of the other half
  expect(() => hold(many[0]!, 1)).toThrow(/memory/)
  await sessions.dispose()
})

it("room is given in order, and work that is too large for it runs alone", async () => {
  const slots = new Slots(10)
  const ran: string[] = []
  const ends: (() => void)[] = []
  const run = (name: string, size: number) =>
    slots.run(size, () => {
      ran.push(name)
      return new Promise<void>((resolve) => ends.push(resolve))
    })
  const all = [run("a", 6), run("large", 99), run("b", 1)]
  await Promise.resolve()
  expect(ran).toEqual(["a"])
  for (const expected of ["a large", "a large b"]) {
    ends.shift()!()
    await expect.poll(() => ran.join(" ")).toBe(expected)
  }
  const waits = run("never", 10)
  slots.close(new Error("over"))
  await expect(waits).rejects.toThrow("over")
  ends.shift()!()
  await Promise.all(all)
})

it("a policy of saved weights is not closed while it is in use, and the base model's stays", async () => {
  const open: string[] = []
  const closed: string[] = []
  const policies = new FrozenPolicies({
    open: async (path = "base") => {
      open.push(path)
      return { name: path, dispose: async () => void closed.push(path) } as unknown as NativePolicy
    },
    versionOf: async (path) => path,
    most: 2,
  })
  let end = () => {}
  const busy = policies.using("a", () => new Promise<void>((resolve) => (end = resolve)))
  await policies.using(undefined, async () => {})
  const other = policies.using("b", async () => "b")
  const again = policies.using("a", async () => "a")
  await policies.using(undefined, async () => {})
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect([open, closed]).toEqual([["base", "a"], []])
  end()
  await busy
  expect(await Promise.all([other, again])).toEqual(["b", "a"])
  expect([open, closed]).toEqual([
    ["base", "a", "b", "a"],
    ["a", "b"],
  ])
  await policies.dispose()
  expect(closed.toSorted()).toEqual(["a", "a", "b", "base"])
})
