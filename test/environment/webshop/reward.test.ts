import { describe, expect, it } from "vitest"
import { colours, normaliseColour } from "../../../src/environment/webshop/colours.ts"
import { contentWords } from "../../../src/environment/webshop/nouns.ts"
import { judge } from "../../../src/environment/webshop/reward.ts"
import { goal, product } from "./world.ts"

const chosen = new Map([
  ["color", "navy blue"],
  ["size", "large"],
])
const bought = (
  changes: Parameters<typeof product>[0] = {},
  options: ReadonlyMap<string, string> = chosen,
  price = 22.5,
) => ({
  product: product(changes),
  options,
  price,
})

describe("the reward of a purchase", () => {
  it("is 1 if everything matches, including the price limit", () => {
    expect(judge(bought({}, chosen, 30), goal(), contentWords)).toEqual({
      reward: 1,
      typeReward: 1,
      queryMatch: true,
      categoryMatch: true,
      titleScore: 1,
      attributes: { met: 1, of: 1 },
      options: { met: 2, of: 2 },
      priceMet: true,
    })
  })

  it.each([
    ["no option chosen", bought({}, new Map()), 2 / 4],
    [
      "a wrong colour",
      bought(
        {},
        new Map([
          ["color", "red"],
          ["size", "large"],
        ]),
      ),
      3 / 4,
    ],
    ["one cent too dear", bought({}, chosen, 30.01), 3 / 4],
    ["an attribute missing", bought({ attributes: [] }), 3 / 4],
    ["the attribute in the title", bought({ attributes: [], title: "Bright Weather Proof Garden Lamp" }), 1],
    ["the attribute in the bullets", bought({ attributes: [], bullets: ["It is Weather", "proof"] }), 1],
    ["the attribute in the description", bought({ attributes: [], description: "WEATHER PROOF" }), 1],
    ["the attribute nearly", bought({ attributes: ["weather proofs"] }), 1],
  ])("counts the parts: %s", (_, purchase, reward) => {
    expect(judge(purchase, goal(), contentWords).reward).toBe(reward)
  })

  // The goal's name has 3 nouns.
  it.each([
    ["another query, another category, 1 of 3 nouns", { query: "x", productCategory: "a", title: "Lamp" }, 1, 1 / 3],
    ["no noun, though query and category match", { title: "Sturdy chair" }, 0, 0],
    [
      "two common categories in any order",
      { query: "x", productCategory: "Lamps › b › Shop", title: "Lamp" },
      1,
      1 / 3,
    ],
  ])("weighs the type: %s", (_, changes, typeReward, titleScore) => {
    expect(judge(bought(changes), goal(), contentWords)).toMatchObject({ typeReward, titleScore })
  })

  it.each([
    ["lamp one two three four", "x", 0.5, 0.2],
    ["lamp one two three four", "garden lamps", 1, 0.2],
    ["lamp one two three four five six seven eight nine", "x", 0.5, 0.1],
    ["lamp one two three four five six seven eight nine ten", "garden lamps", 0.1, 1 / 11],
    ["42 % 7", "x", 0.5, 0.2],
    // A set of common nouns over a list of wanted ones.
    ["lamp lamp lamp lamp", "x", 1, 0.25],
  ])("steps down with few common nouns: wanted %j", (name, query, typeReward, titleScore) => {
    const purchase = bought({ title: "Lamp", query, productCategory: "other" })
    expect(judge(purchase, goal({ name }), contentWords)).toMatchObject({ typeReward, titleScore })
  })

  it("counts a category once, however often it occurs", () => {
    const purchase = bought({ productCategory: "Shop › Shop › x" })
    expect(judge(purchase, goal(), contentWords).categoryMatch).toBe(false)
  })

  // The value bought is reduced to its colour, the wish is the printed tuple ('color', 'navy blue').
  it.each([
    ["color", "navy blue", "sky blue", 1],
    ["color", "blue", "sky blue", 1],
    ["color", "navy blue", "red", 0],
    ["color", "brown2070", "brown2070", 0],
    ["shape", "rectangular", "rectangular", 0],
    ["finish", "black", "matte black", 1],
    // `red` is not in the tuple as a whole, so the wish keeps its words.
    ["color", "dark red", "dark green", 1],
    ["size", "navy\u00a0coat", "xa0coat", 1],
  ])("wish %s: %s, bought %j", (name, wish, value, met) => {
    const wanted = goal({ options: { [name]: wish } })
    expect(judge(bought({}, new Map([[name, value]])), wanted, contentWords).options).toEqual({ met, of: 1 })
  })

  it("compares free options of human goals directly, with colours normalized on both sides", () => {
    const options = (...wishes: string[]) => judge(bought(), goal({ options: wishes }), contentWords).options
    expect(options("sky blue", "large")).toEqual({ met: 2, of: 2 })
    expect(options("green")).toEqual({ met: 0, of: 1 })
    expect(options()).toEqual({ met: 0, of: 0 })
    expect(judge(bought(), goal({ options: [] }), contentWords).reward).toBe(1)
  })
})

describe("fuzzy comparison of attributes", () => {
  // 2·17 / 40 and 2·6 / 14 of the letters are common.
  it.each([
    ["abcdefghijklmnopqrst", "abcdefghijklmnopqxyz", 0],
    ["abcdefg", "abcdefx", 1],
  ])("takes more than 85 for the same: %s, %s", (wish, attribute, met) => {
    const { attributes } = judge(bought({ attributes: [attribute] }), goal({ attributes: [wish] }), contentWords)
    expect(attributes).toEqual({ met, of: 1 })
  })
})

describe("colours", () => {
  it("are 102, in order, and found inside words", () => {
    expect(colours).toHaveLength(102)
    expect([...colours].sort()).toEqual(colours)
    expect(normaliseColour("navy blue")).toBe("blue")
    expect(normaliseColour("titan")).toBe("tan")
    expect(normaliseColour("fashion")).toBe("ash")
    expect(normaliseColour("webshop")).toBe("webshop")
  })
})

describe("contentWords", () => {
  it("returns words of letters in lower case, with repetitions, without stop words", () => {
    expect(contentWords("The Rug's rug of 4K wool-blend, No. 2 & a D.I.Y. kit 'n 7up")).toEqual([
      ...["rug's", "rug", "wool-blend", "d", "i", "y", "kit"],
    ])
  })
})
