import { expect, it } from "vitest"
import { Game } from "../../../src/environment/alfworld/game.ts"
import { GameCache } from "../../../src/environment/alfworld/game-cache.ts"
import { tinyFile } from "./tiny.ts"

function cacheOf(size: number) {
  const loaded: string[] = []
  const cache = new GameCache<string>((task) => {
    loaded.push(task)
    if (task === "bad") throw new Error("no such game")
    return Game.parse(tinyFile({}))
  }, size)
  return { cache, loaded }
}

it("keeps the most recently used games", () => {
  const { cache, loaded } = cacheOf(2)
  for (const task of ["a", "b", "a", "c", "a", "b"]) cache.now(task)
  expect(loaded).toEqual(["a", "b", "c", "b"])
  expect(cache.now("a")).toBe(cache.now("a"))
})

it("reads a game once for concurrent requests, each game in a separate turn of the event loop", async () => {
  const { cache, loaded } = cacheOf(8)
  const turns: number[] = []
  let turn = 0
  const count = () => {
    turn++
    if (turn < 50) setImmediate(count)
  }
  count()
  const asked = ["a", "a", "b", "a", "b", "c"].map(async (task) => {
    const game = await cache.get(task)
    turns.push(turn)
    return game
  })
  const games = await Promise.all(asked)
  expect(loaded).toEqual(["a", "b", "c"])
  expect(new Set(games).size).toBe(3)
  expect(new Set(turns).size).toBe(3)
})

it("reports an unreadable game to all requests, and reads the others", async () => {
  const { cache } = cacheOf(8)
  const asked = ["bad", "a", "bad"].map((task) => cache.get(task))
  const settled = await Promise.allSettled(asked)
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"])
})
