import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it, onTestFinished } from "vitest"
import { Connection } from "../../src/engine/remote/connection.ts"
import { exchange } from "../../src/engine/remote/exchange.ts"
import { findModel } from "../../src/engine/remote/find-model.ts"
import { excerpt } from "../../src/engine/remote/refused.ts"
import type { RemoteModel } from "../../src/engine/remote/remote-model.ts"
import { Samplers } from "../../src/engine/remote/samplers.ts"
import type { Session } from "../../src/engine/remote/session.ts"
import { trainOn } from "../../src/engine/remote/trainer.ts"
import { dtypes, int64Bytes } from "../../src/tinker/arrays.ts"
import { type ForwardBackwardOutput, forwardBackwardOutput } from "../../src/tinker/messages.ts"
import { decodeTraining, encodeSample, sampleFromJson, trainingFromJson } from "../../src/tinker/results.ts"

// Engines that answer more than they were asked, or declare more than they send.

const bad = expect.objectContaining({ code: "BAD_ARGUMENT" })
const refused = expect.objectContaining({ code: "ENGINE_REJECTED" })
const lost = expect.objectContaining({ code: "ENGINE_LOST" })
const column = (data: number, offsets: readonly number[], dtype: number = dtypes.float32) => ({
  ...{ data: new Uint8Array(data), offsets: int64Bytes(offsets), dtype, trailingShape: [] },
})
type Fields = ForwardBackwardOutput["outputs"][number]["fields"]
const output = (...outputs: readonly (readonly [count: number, fields?: Fields])[]) =>
  forwardBackwardOutput.encode({
    type: "ArrayRecord",
    outputs: outputs.map(([count, fields = new Map()]) => ({ type: "", fields, count })),
    metrics: new Map(),
  })
const logProbs = (...given: Parameters<typeof column>): Fields => new Map([["logprobs", column(...given)]])

describe("results of training", () => {
  it("have no more data than were asked about, whatever they count", () => {
    expect(decodeTraining(output([2]), 2).logProbs).toHaveLength(2)
    for (const count of [3, 2 ** 27, 2 ** 53, -1]) expect(() => decodeTraining(output([count]), 2)).toThrow(bad)
    expect(() => decodeTraining(output([1], [2]), 2)).toThrow(bad)
    expect(() => decodeTraining(output([2 ** 27, logProbs(8, [0, 4, 8])]), 2 ** 30)).toThrow(bad)
    expect(() => trainingFromJson({ loss_fn_outputs: Array(3).fill({}) }, 2)).toThrow(bad)
  })

  it("have offsets within their data, in order", () => {
    expect(decodeTraining(output([2, logProbs(8, [0, 4, 8])]), 2).logProbs).toEqual([
      Float32Array.of(0),
      Float32Array.of(0),
    ])
    for (const offsets of [[0, 4], [0, 4, 8, 12], [0, 4, 12], [0, 8, 4], [-4, 0, 4], [0, 3, 8], []])
      expect(() => decodeTraining(output([2, logProbs(8, offsets)]), 2), `${offsets}`).toThrow(bad)
    expect(() => decodeTraining(output([2, logProbs(8, [0, 4, 8], 77)]), 2)).toThrow(bad)
  })

  it("are lists in JSON: an object with a length allocates nothing", () => {
    const like = { length: 2 ** 32 - 1 }
    expect(trainingFromJson({ loss_fn_outputs: [{ logprobs: { data: like } }, null, 3] }).logProbs).toEqual([
      ...Array(3).fill(new Float32Array()),
    ])
    expect(() => trainingFromJson({ loss_fn_outputs: like })).toThrow(bad)
    expect(() => sampleFromJson({ sequences: like })).toThrow(bad)
    expect(() => sampleFromJson({ sequences: [{ tokens: like }] })).toThrow(bad)
    expect(sampleFromJson({ sequences: [{ tokens: [1], logprobs: like }] }).sequences[0]!.logProbs).toBeUndefined()
  })

  it("are those of the data, as long as these are", async () => {
    const data = [{ tokens: Int32Array.of(1, 2), inputs: new Map() }]
    const asked: unknown[] = []
    const answering = (bytes: Uint8Array) =>
      ({
        submit: async (_: string, __: unknown, options: object) => {
          asked.push(options)
          return { requestId: "1", result: async () => ({ body: undefined, bytes }) }
        },
      }) as unknown as RemoteModel
    const train = (bytes: Uint8Array, forwardOnly = true) =>
      trainOn(answering(bytes), { loss: "ppo", config: {}, data }, "protobuf", { forwardOnly })
    expect((await train(output([1, logProbs(8, [0, 8])]))).logProbs[0]).toHaveLength(2)
    await expect(train(output([1, logProbs(4, [0, 4])]))).rejects.toEqual(refused)
    await expect(train(output([1]))).rejects.toEqual(refused)
    expect((await train(output([1]), false)).logProbs[0]).toHaveLength(0)
    await expect(train(output([0]))).rejects.toEqual(refused)
    await expect(train(output([2 ** 27]))).rejects.toEqual(lost)
    expect(asked[0]).toMatchObject({ most: expect.any(Number) })
  })
})

it("samples are one, and no longer than was asked", async () => {
  const answering = (sequences: number, tokens: number) => {
    const sequence = { tokens: new Int32Array(tokens), logProbs: new Float32Array(tokens), stopped: true }
    const bytes = encodeSample({ sequences: Array(sequences).fill(sequence) })
    return new Samplers({
      connection: { send: async () => ({ kind: "answered", body: { request_id: "1" } }) },
      futures: { result: async () => ({ body: undefined, bytes }) },
    } as unknown as Session)
  }
  const asked = { prompt: Int32Array.of(1), params: { max_tokens: 3 } }
  expect((await answering(1, 3).draw("s", asked)).sequences).toHaveLength(1)
  await expect(answering(2, 1).draw("s", asked)).rejects.toEqual(refused)
  await expect(answering(1, 4).draw("s", asked)).rejects.toEqual(refused)
})

describe("answers", () => {
  const serving = async (answer: Parameters<typeof createServer>[1]) => {
    const server = createServer(answer as never)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const attempt = async (url: string, more: object = {}) =>
    await new Connection({ url, onWarning: () => {} }).attempt({ path: "/x", body: {}, ...more })
  const json = { "content-type": "application/json" }

  it("without an end are given up at so many bytes, and slow ones in time", async () => {
    let sent = 0
    const url = await serving((_, response) => {
      response.writeHead(200, json)
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 0x20))) sent += 65_536
        if (!response.destroyed) response.once("drain", more)
      }
      more()
    })
    expect(await attempt(url)).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("longer than 1048576"),
    })
    expect(sent).toBeLessThan(40e6)
    const slow = await serving((_, response) => {
      response.writeHead(200, json)
      const drip = setInterval(() => response.write(" "), 5)
      response.once("close", () => clearInterval(drip))
    })
    expect(await attempt(slow, { within: 200 })).toMatchObject({ kind: "unknown", code: "LATE" })
    const short = exchange(new URL(url), { method: "GET", headers: {}, most: 100, within: 10_000 })
    await expect(short).rejects.toThrow(/longer than 100 bytes/)
  })

  it("are JSON that can be parsed in time, and are no INTERNAL error however they are nested", async () => {
    const bodies = {
      names: JSON.stringify(Object.fromEntries(Array.from({ length: 2e5 }, (_, i) => [i.toString(36), 1]))),
      lists: "[".repeat(1e6),
      deep: `${"[".repeat(1e5)}${"]".repeat(1e5)}`,
      error: `{"error": ${"[".repeat(1e5)}${"]".repeat(1e5)}}`,
      long: JSON.stringify({ detail: "x".repeat(1e6) }),
    }
    const url = await serving((request, response) => {
      const [, status, name] = /(\d+)\/(\w+)$/.exec(request.url!)!
      response.writeHead(Number(status), json).end(bodies[name as keyof typeof bodies])
    })
    const of = (status: number, name: string) => attempt(url, { path: `/${status}/${name}`, most: 2 ** 23 })
    for (const name of ["names", "lists"]) expect(await of(200, name)).toMatchObject({ kind: "unknown" })
    expect(await of(200, "deep")).toMatchObject({ kind: "answered" })
    for (const name of Object.keys(bodies)) {
      const outcome = await of(400, name)
      expect(outcome).toMatchObject({ kind: "refused", status: 400 })
      expect((outcome as { reason: string }).reason.length).toBeLessThanOrEqual(500)
    }
    expect(excerpt(JSON.parse(bodies.deep))).toBe("it is nested too deep")
  })

  it("that name models name them in text", async () => {
    const deep = JSON.parse(`${"[".repeat(1e5)}${"]".repeat(1e5)}`)
    const told = (supported_models: unknown) =>
      findModel({ connection: { url: "u", send: async () => ({ body: { supported_models } }) } } as never, undefined)
    const one = { model_name: "m", max_context_length: 5 }
    expect(await told([null, 3, "x", one, { model_name: deep }])).toEqual({ name: "m", longest: 5 })
    for (const length of [-1, 0, "5", null])
      expect((await told([{ ...one, max_context_length: length }])).longest).toBe(Number.POSITIVE_INFINITY)
    const many = Array.from({ length: 10_000 }, (_, i) => ({ model_name: `model-${i}` }))
    await expect(told(many)).rejects.toThrow(/^.{0,800}$/)
    for (const models of [deep, "x", { length: 1e9 }, null]) await expect(told(models)).rejects.toEqual(refused)
  })
})
