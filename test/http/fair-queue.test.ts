import { expect, it } from "vitest"
import { FairQueue } from "../../src/http/fair-queue.ts"

it("lets clients take turns, each with one piece at a time, in the order of its own", async () => {
  const queue = new FairQueue(2)
  const done: string[] = []
  let [running, most] = [0, 0]
  const piece = (client: string, name: string) =>
    queue.take(client, async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 2))
      running--
      done.push(name)
    })
  const work = ["a1", "a2", "a3", "a4", "a5"].map((name) => piece("a", name))
  work.push(piece("b", "b1"), piece("c", "c1"), piece("b", "b2"))
  await Promise.all(work)
  expect(done.filter((name) => name.startsWith("a"))).toEqual(["a1", "a2", "a3", "a4", "a5"])
  expect(done.indexOf("b1")).toBeLessThan(done.indexOf("a2") + 1)
  expect(done.indexOf("c1")).toBeLessThan(done.indexOf("a3"))
  expect(done.indexOf("b2")).toBeLessThan(done.indexOf("a4"))
  expect(most).toBe(2)
})

it("continues after a piece that failed", async () => {
  const queue = new FairQueue(1)
  const failed = queue.take("a", () => Promise.reject(new Error("no")))
  const next = queue.take("b", async () => "yes")
  await expect(failed).rejects.toThrow("no")
  expect(await next).toBe("yes")
})
