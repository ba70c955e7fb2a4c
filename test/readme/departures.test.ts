import { expect, it } from "vitest"
import { departures } from "../../src/engine-server/departures.ts"
import { page } from "./pages.ts"

it("docs/engine.md lists every value of --depart with its description", () => {
  const rows = Object.entries(departures).map(([name, text]) => `| \`${name}\` | ${text} |\n`)
  expect(page("docs/engine.md").text).toContain(`| --- | --- |\n${rows.join("")}`)
})
