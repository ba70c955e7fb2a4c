import { readFile } from "node:fs/promises"
import { expect, it } from "vitest"
import { estimators } from "../../src/credit/estimators.ts"
import { losses } from "../../src/loss/losses.ts"

it("the README counts the estimators and losses that are shipped", async () => {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8")
  const [, shown, more] = /(\d+) estimators and (\d+) losses/.exec(readme)!
  expect([Number(shown), Number(more)]).toEqual([Object.keys(estimators).length, Object.keys(losses).length])
})
