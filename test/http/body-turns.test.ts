import type { IncomingMessage } from "node:http"
import { Readable } from "node:stream"
import { expect, it } from "vitest"
import { BodyBudget } from "../../src/http/body-budget.ts"

it("clients take turns while bodies are read: many long bodies of one do not delay that of another", async () => {
  const budget = new BodyBudget(2 ** 30, 2 ** 30, [])
  const order: string[] = []
  const read = async (client: string) => {
    const incoming = Readable.from(Array.from({ length: 100 }, () => Buffer.alloc(1024)))
    const { body } = budget.read(Object.assign(incoming, { headers: {} }) as unknown as IncomingMessage, client)
    for await (const _ of body) for (const end = performance.now() + 0.05; performance.now() < end; );
    order.push(client)
  }
  await Promise.all([...Array.from({ length: 12 }, () => read("many")), read("one")])
  // Its body is a thirteenth of all, and it has half of the turns.
  expect(order.indexOf("one")).toBeLessThanOrEqual(3)
})
