import timers from "node:timers/promises"
import { afterAll, expect, it, vi } from "vitest"
import { httpRetriever } from "../../../src/environment/search/http-retriever.ts"
import { fakeRetriever, json } from "./fake-retriever.ts"

const delays: unknown[] = []
const sleep = vi.spyOn(timers, "setTimeout").mockImplementation(async (milliseconds) => void delays.push(milliseconds))
afterAll(() => sleep.mockRestore())

it("a retriever is asked again after 1 s, 2 s, 3 s and so on, ten times in all", async () => {
  const server = await fakeRetriever((response) => json(response, {}, 502))
  const retriever = httpRetriever(server.url, { requestForm: "single", timeout: 60, attempts: 10, delay: 1 })
  await expect(retriever.retrieve("q", 3, new AbortController().signal)).rejects.toThrow("HTTP status 502")
  expect(server.requests).toHaveLength(10)
  expect(delays).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((seconds) => seconds * 1000))
  await server.close()
})
