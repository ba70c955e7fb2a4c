import { expect, it } from "vitest"
import { Room } from "../../src/engine-server/room.ts"

it("memory that requests share is given back at their end, however they end", async () => {
  const room = new Room(10)
  const busy = expect.objectContaining({ status: 429 })
  let end = () => {}
  const held = new Promise<void>((resolve) => {
    end = resolve
  })
  const first = room.holding(async (hold) => {
    hold(4)
    hold(4)
    await held
    return "read"
  })
  await expect(room.holding(async (hold) => hold(3))).rejects.toEqual(busy)
  await room.holding(async (hold) => hold(2))
  end()
  expect(await first).toBe("read")
  const failing = async (hold: (bytes: number) => void) => {
    hold(10)
    throw new Error("broken")
  }
  for (let i = 0; i < 3; i++) await expect(room.holding(failing)).rejects.toThrow("broken")
  await room.holding(async (hold) => hold(10))
  await expect(room.holding(async (hold) => hold(11))).rejects.toEqual(busy)
})
