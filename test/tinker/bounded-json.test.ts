import { expect, it } from "vitest"
import { jsonExcess } from "../../src/tinker/bounded-json.ts"
import { atOnce } from "../../src/util/pace.ts"

const limits = { strings: 1000, values: 5000 }
const excess = (text: string) => atOnce(jsonExcess(text, limits))
/** Longer than what is checked at once. */
const blank = " ".repeat(2 ** 19)

it.each<[string, string, number, RegExp]>([
  ["strings", '"",', 1000, /1000 strings/],
  ["lists", "[],", 1000, /1000 lists or objects/],
  ["objects", "{},", 1000, /1000 lists or objects/],
  ["values", "1,", 5000, /5000 values/],
])("counts %s over the whole of a text", (_, one, most, message) => {
  const half = one.repeat(most / 2)
  expect(excess(`${half}${blank}${half}`)).toBeUndefined()
  expect(excess(`${half}${blank}${half}${one}`)).toMatch(message)
  expect(excess(`${one.repeat(most + 1)}${blank}`)).toMatch(message)
})

it("counts in pieces", () => {
  let pieces = 0
  for (const _ of jsonExcess(`[${blank}${blank}]`, limits)) pieces++
  expect(pieces).toBeGreaterThan(4)
})
