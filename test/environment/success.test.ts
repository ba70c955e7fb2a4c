import { expect, it } from "vitest"
import { successMetrics } from "../../src/environment/success.ts"

it("reports success once over all tasks and once per kind", () => {
  expect(successMetrics(true, "nq")).toEqual({ success: 1, "success/nq": 1 })
  expect(successMetrics(false, "pick_two_obj_and_place")).toEqual({ success: 0, "success/pick_two_obj_and_place": 0 })
  expect(successMetrics(true)).toEqual({ success: 1 })
})

it.each([
  ["world 1 hop", "world-1-hop"],
  ["v1.2_a-b", "v1.2_a-b"],
  ["問答", "問答"],
  [7, "7"],
  ["a/b\n\u001b[31mred\u0000", "a-b-31mred-"],
  ["x".repeat(1000), "x".repeat(80)],
])("makes a name of the kind %j", (kind, name) => {
  expect(Object.keys(successMetrics(true, kind))).toEqual(["success", `success/${name}`])
})

it.each(["", " ", "\n", "---", "\ud800", null])("takes %j for no kind", (kind) => {
  expect(successMetrics(true, kind)).toEqual({ success: 1 })
})
