import { expect, it } from "vitest"
import { stateGraph } from "../../../src/view/data/graph.ts"
import { actionLine, actionNames } from "../../../src/view/page/graph/action-names.ts"
import { groupOf, madeEpisode, madeStep } from "../data/made-group.ts"

const namesOf = (actions: readonly (readonly [state: number, action: string])[]) => {
  const { edges } = stateGraph(
    groupOf(...actions.map(([state, action], at) => madeEpisode(at, [madeStep(state, action)]))),
  )
  const names = actionNames(edges, 18)
  return Object.fromEntries(edges.map(({ action }, at) => [action, names[at]]))
}
const query = (sql: string) => JSON.stringify([["query", JSON.stringify({ sql })]])

it("actions are named as calls, without what all of them begin with", () => {
  const [price, stock] = [query("SELECT price FROM items"), query("SELECT stock FROM items")]
  expect(
    namesOf([
      [0, price],
      [1, stock],
    ]),
  ).toEqual({ [price]: "price FROM items", [stock]: "stock FROM items" })
  const answers = ["<answer>SELECT name FROM a</answer>", "<answer>SELECT city FROM b</answer>"] as const
  expect(Object.values(namesOf(answers.map((action) => [0, action])))).toEqual(["name FROM a", "city FROM b"])
  expect(
    namesOf([
      [0, "up"],
      [0, "down"],
    ]),
  ).toEqual({ up: "up", down: "down" })
})

it("actions of a state that would have equal names are named by what differs", () => {
  const [one, other] = ["price", "stock"].map((column) => query(`SELECT a, b, c, d, e FROM items WHERE ${column} > 3`))
  expect(
    namesOf([
      [0, one!],
      [0, other!],
      [1, "look"],
    ]),
  ).toEqual({ [one!]: "price > 3", [other!]: "stock > 3", look: "look" })
  expect(actionLine(`${one}`)).toBe("query · SELECT a, b, c, d, e FROM items WHERE price > 3")
})
