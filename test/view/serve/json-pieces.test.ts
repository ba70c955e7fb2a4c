import { expect, it } from "vitest"
import { jsonPieces } from "../../../src/view/serve/json-pieces.ts"
import { madeRun } from "../made-run.ts"

it.each([
  madeRun("0", 3, 2),
  [],
  {},
  null,
  "text \u2028 </script> \ud800",
  [1, null, Number.NaN, "x", undefined, true],
  { a: undefined, b: { c: [[], [{}], [[1, [2, [3, [4, [5, [6]]]]]]]] } },
  Array.from({ length: 2000 }, (_, at) => at),
  [null, { a: 1 }, "x"],
])("JSON in pieces is the same JSON (%#)", async (value) => {
  let text = ""
  for await (const piece of jsonPieces(value)) text += piece
  expect(text).toBe(JSON.stringify(value))
})

it("comes in pieces of which none is large", async () => {
  const pieces: string[] = []
  for await (const piece of jsonPieces({ all: Array.from({ length: 200_000 }, (_, at) => at) })) pieces.push(piece)
  expect(pieces.length).toBeGreaterThan(10)
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(80_000)
})
