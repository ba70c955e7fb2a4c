import { expect, it } from "vitest"

it("regular expressions of toMatchObject are matched", () => {
  expect({ code: "A", message: "is over" }).toMatchObject({ code: "A", message: /over$/ })
  expect({ code: "A", message: "is over" }).not.toMatchObject({ message: /^over/ })
  expect([{ message: "is over" }]).not.toMatchObject([{ message: /^over/ }])
})
