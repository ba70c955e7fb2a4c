import { expect, it } from "vitest"
import { FairQueue } from "../../../src/http/fair-queue.ts"
import type { Source } from "../../../src/view/data/source.ts"
import { answerApi } from "../../../src/view/serve/api.ts"

const reports = Array.from({ length: 3000 }, (_, iteration) => ({ iteration, metrics: { loss: iteration / 7 } }))

/** A source whose work takes some turns of the event loop, and that counts how much is done at the same time. */
function countingSource() {
  const counts = { running: 0, most: 0 }
  const work = async () => {
    counts.most = Math.max(counts.most, ++counts.running)
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    counts.running--
    return { cursor: "none", reset: true, reports }
  }
  return { counts, source: { reports: work } as unknown as Source }
}

it("lets a client have two answers made at once, and another client wait for no more than these", async () => {
  const { counts, source } = countingSource()
  const queue = new FairQueue(8, 2)
  const done: string[] = []
  const ask = async (client: string, name: string) => {
    const request = new Request("http://127.0.0.1/api/runs/one/reports")
    const take = <T>(work: () => Promise<T>) => queue.take(client, work)
    const response = await answerApi(source, "runs/one/reports", request, take)
    expect(await response.json()).toMatchObject({ reports })
    done.push(name)
  }
  const many = Array.from({ length: 16 }, (_, at) => ask("a", `a${at}`))
  await Promise.all([...many, ask("b", "b")])
  expect(counts.most).toBe(3) // two of a, one of b
  expect(done.indexOf("b")).toBeLessThan(4)
})

it("reads nothing for a client that has gone while it waited", async () => {
  const { counts, source } = countingSource()
  const request = new Request("http://127.0.0.1/api/runs/one/reports", { signal: AbortSignal.abort() })
  const queue = new FairQueue(8, 2)
  const answered = answerApi(source, "runs/one/reports", request, (work) => queue.take("a", work))
  await expect(answered).rejects.toThrow("aborted")
  expect(counts.most).toBe(0)
})
