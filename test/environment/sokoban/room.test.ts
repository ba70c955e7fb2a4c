import { describe, expect, it } from "vitest"
import { boxesOnTarget, isSolved, move } from "../../../src/environment/sokoban/move.ts"
import { type Direction, formatRoom, parseRoom } from "../../../src/environment/sokoban/room.ts"
import { solve } from "../../../src/environment/sokoban/solve.ts"

const bare = (text: string) => text.replaceAll(" ", "").split("\n")

describe("parseRoom and formatRoom", () => {
  it("support all seven symbols and are inverse to each other", () => {
    const text = "# # # # # #\n# _ O √ X #\n# X S _ _ #\n# # # # # #"
    expect(Array.from(parseRoom(text).cells.subarray(6, 18))).toEqual([0, 1, 2, 3, 4, 0, 0, 4, 6, 1, 1, 0])
    expect(formatRoom(parseRoom(text))).toBe(text)
    expect(formatRoom(parseRoom(text.replaceAll(" ", "")))).toBe(text)
  })

  it.each([
    ["", "border|player"],
    ["####\n#PX#\n####", "as many targets as boxes"],
    ["#####\n#PXO_\n#####", "border"],
    ["#####\n#PXO#\n####", "differ in length"],
    ["#####\n#_XO#\n#####", "exactly one player"],
    ["######\n#PXOS#\n######", "exactly one player"],
    ["#####\n#P__#\n#####", "needs at least one box"],
    ["#####\n#PX@#\n#####", 'contains "@"'],
  ])("reject %j", (text, reason) => {
    expect(() => parseRoom(text)).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(reason) }),
    )
  })
})

describe("move", () => {
  const after = (text: string, ...moves: Direction[]) => {
    const room = moves.reduce(move, parseRoom(text))
    return bare(formatRoom(room))[1]
  }
  const row = (cells: string) => `${"#".repeat(cells.length)}\n${cells}\n${"#".repeat(cells.length)}`

  it.each([
    ["walks to a free cell", "#P_XO#", "right", "#_PXO#"],
    ["walks onto a target", "#PO_X#", "right", "#_S_X#"],
    ["leaves a target as it was", "#S_X#", "right", "#OPX#"],
    ["is stopped by a wall", "#PXO#", "left", "#PXO#"],
    ["pushes a box to a floor cell", "#PX_O#", "right", "#_PXO#"],
    ["pushes a box onto a target", "#PXO#", "right", "#_P√#"],
    ["pushes a box off a target and stands there", "#P√_X#O#", "right", "#_SXX#O#"],
    ["pushes a box from target to target", "#P√OX#", "right", "#_S√X#"],
    ["does not push a box into a wall", "#O_PX#", "right", "#O_PX#"],
    ["does not push two boxes", "#PXX_OO#", "right", "#PXX_OO#"],
    ["does not push a box against a box on a target", "#PX√_O#", "right", "#PX√_O#"],
    ["does not pull", "#_PXO#", "left", "#P_XO#"],
  ] as const)("%s", (_, start, direction, end) => {
    expect(after(row(start), direction)).toBe(end)
  })

  it("works for columns, too", () => {
    const room = parseRoom("#####\n#_O_#\n#_X_#\n#_P_#\n#####")
    expect(bare(formatRoom(move(room, "up")))).toEqual(["#####", "#_√_#", "#_P_#", "#___#", "#####"])
    expect(bare(formatRoom(move(room, "right")))[3]).toBe("#__P#")
    expect(move(room, "down")).toBe(room)
    expect(bare(formatRoom(move(move(room, "right"), "up")))[2]).toBe("#_XP#")
  })

  it("does not modify its room", () => {
    const room = parseRoom("#####\n#PXO#\n#####")
    const before = formatRoom(room)
    const next = move(room, "right")
    expect(formatRoom(room)).toBe(before)
    expect([boxesOnTarget(room), boxesOnTarget(next)]).toEqual([0, 1])
    expect([isSolved(room), isSolved(next)]).toEqual([false, true])
  })
})

describe("solve", () => {
  it("finds a shortest solution, also around the box", () => {
    expect(solve(parseRoom("######\n#___X#\n#_P_O#\n######"))).toBeUndefined()
    expect(solve(parseRoom("#####\n#OXP#\n#####"))).toEqual(["left"])
    expect(solve(parseRoom("#####\n#___#\n#PXO#\n#___#\n#####"))).toEqual(["right"])
    expect(solve(parseRoom("#####\n#___#\n#OXP#\n#___#\n#####"))).toEqual(["left"])
    expect(solve(parseRoom("#####\n#___#\n#PX_#\n#_O_#\n#####"))).toEqual(["up", "right", "down"])
    expect(solve(parseRoom("#######\n#O_X_P#\n#___X_#\n#___O_#\n#######"))).toEqual([
      "left",
      "down",
      "up",
      "left",
      "left",
    ])
  })

  it("returns nothing for a solved room", () => {
    expect(solve(parseRoom("#####\n#P√_#\n#####"))).toEqual([])
  })

  it("detects a stuck box, and stops at its limit", () => {
    expect(solve(parseRoom("######\n#X__P#\n#__O_#\n######"))).toBeUndefined()
    const long = parseRoom("########\n#P_____#\n#______#\n#___XO_#\n########")
    expect(solve(long)).toBeDefined()
    expect(solve(long, { maxPositions: 3 })).toBeUndefined()
  })

  it("is as short as a search without pruning, in rooms with two boxes", () => {
    for (const text of [
      "######\n#P___#\n#_XX_#\n#_OO_#\n######",
      "#######\n#P_O__#\n#_XX__#\n#__O__#\n#_____#\n#######",
      "######\n#_O__#\n#_√X_#\n#_P__#\n######",
    ]) {
      expect(solve(parseRoom(text))?.length).toBe(plainSearch(text))
    }
  })
})

/** Length of a shortest solution, over the rooms themselves. */
function plainSearch(text: string): number | undefined {
  let rooms = [parseRoom(text)]
  const seen = new Set<string>()
  for (let length = 0; rooms.length > 0; length++) {
    if (rooms.some(isSolved)) return length
    rooms = rooms
      .flatMap((room) => (["up", "down", "left", "right"] as const).map((direction) => move(room, direction)))
      .filter((room) => !seen.has(formatRoom(room)) && seen.add(formatRoom(room)))
  }
  return undefined
}
