import { expect, it } from "vitest"
import { tinkerServer } from "../../src/engine-server/tinker-server.ts"
import { key } from "./serving.ts"

it("clients of an engine take turns: many long requests of one do not delay a request of another", async () => {
  await using server = tinkerServer({
    ...{ model: "tiny", maxPositions: 64, stopTokens: [], key, checkpoints: "not-used" },
    open: () => Promise.reject(new Error("nothing is opened here")),
    openFrozen: () => Promise.reject(new Error("nothing is opened here")),
  })
  const body = `{"forward_backward_input":{"data":[${"{},".repeat(150_000)}{}]}}`
  const order: string[] = []
  const send = async (client: string) => {
    const headers = { "content-type": "application/json", "x-api-key": key }
    const request = new Request("http://engine/api/v1/forward_backward", { method: "POST", headers, body })
    const { status } = await server.answer(request, client)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    order.push(client)
  }
  await Promise.all([...Array.from({ length: 12 }, () => send("many")), send("one")])
  // Its work is a thirteenth of all, and it has half of the turns.
  expect(order.indexOf("one")).toBeLessThanOrEqual(3)
})
