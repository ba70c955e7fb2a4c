import { expect, it } from "vitest"
import { type Bounds, integer, integerBetween, number, numberBetween } from "../../src/grammar/numbers.ts"
import { Random } from "../../src/util/random.ts"
import { holder } from "./texts.ts"

const bounds = (low?: number, high?: number, aboveLow = false, belowHigh = false): Bounds => ({
  low: low === undefined ? undefined : BigInt(low),
  high: high === undefined ? undefined : BigInt(high),
  aboveLow,
  belowHigh,
})

it("holds the numbers of JSON, and no others", () => {
  const [whole, any] = [holder(integer), holder(number)]
  for (const text of ["0", "-0", "7", "-12", "1203"]) expect([whole(text), any(text)], text).toEqual([true, true])
  for (const text of ["0.5", "-1.20", "1e9", "2E-3", "3.1e+20"])
    expect([whole(text), any(text)], text).toEqual([false, true])
  for (const text of ["", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x1", "--1", "1 ", "1e999"])
    expect([whole(text), any(text)], text).toEqual([false, false])
})

it("holds whole numbers between bounds", () => {
  const random = new Random(2)
  for (let trial = 0; trial < 80; trial++) {
    const draw = () => (random.below(5) === 0 ? undefined : random.below(10 ** (1 + random.below(4))) - 500)
    const [low, high, above, below] = [draw(), draw(), random.below(2) === 0, random.below(2) === 0]
    const least = (low ?? -Infinity) + (above ? 1 : 0)
    const most = (high ?? Infinity) - (below ? 1 : 0)
    if (least > most) {
      expect(() => holder(integerBetween(bounds(low, high, above, below)))).toThrow("no text")
      continue
    }
    const holds = holder(integerBetween(bounds(low, high, above, below)))
    for (const value of [
      ...Array.from({ length: 60 }, () => random.below(12000) - 600),
      least - 1,
      least,
      most,
      most + 1,
      0,
      1,
      -1,
    ])
      if (Number.isFinite(value) && !Object.is(value, -0))
        expect(holds(`${value}`), `${value} in ${low}..${high} ${above} ${below}`).toBe(value >= least && value <= most)
    expect(holds("007")).toBe(false)
  }
  const safe = holder(integerBetween(bounds(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)))
  expect(["9007199254740991", "9007199254740992", "-9007199254740991", "123", "0"].map(safe)).toEqual([
    true,
    false,
    true,
    true,
    true,
  ])
})

it("holds numbers between bounds, written without an exponent", () => {
  const random = new Random(3)
  for (let trial = 0; trial < 80; trial++) {
    const draw = () => (random.below(5) === 0 ? undefined : random.below(40) - 20)
    const [low, high, above, below] = [draw(), draw(), random.below(2) === 0, random.below(2) === 0]
    const inside = (value: number) =>
      (low === undefined || (above ? value > low : value >= low)) &&
      (high === undefined || (below ? value < high : value <= high))
    if (low !== undefined && high !== undefined && (low > high || (low === high && (above || below)))) {
      expect(() => holder(numberBetween(bounds(low, high, above, below)))).toThrow("no text")
      continue
    }
    const holds = holder(numberBetween(bounds(low, high, above, below)))
    const near = [low, high]
      .filter((bound) => bound !== undefined)
      .flatMap((bound) => [bound, bound + 0.5, bound - 0.5, bound + 0.01])
    for (const value of [...Array.from({ length: 40 }, () => (random.below(6000) - 3000) / 100), ...near])
      if (value !== 0) expect(holds(`${value}`), `${value} in ${low}..${high} ${above} ${below}`).toBe(inside(value))
    expect(holds("0")).toBe(inside(0))
    if (high !== undefined && high > 0) expect(holds(`${high}.00`)).toBe(inside(high))
    expect(holds("1e1")).toBe(false)
  }
})
