import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { renamed } from "../../src/options/renamed.ts"
import { isShare, metricDescriptions, metricMeaning, metricTitle } from "../../src/runs/metrics.ts"
import { pages, root } from "./pages.ts"

const names = Object.keys(metricDescriptions)
const groups = [...new Set(names.map(groupOf))]
const metric = /["`]([a-z][a-z0-9-]*\/[a-z0-9]+(?:-[a-z0-9]+)*)["`]/g

/** Metric names in string literals and doc comments of src/, and those that a Stopwatch makes. */
function namesInSources(): string[] {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  const sources = files
    .filter((file) => file.endsWith(".ts") && !["options/renamed.ts", "runs/metrics.ts"].includes(file))
    .map((file) => readFileSync(join(root, "src", file), "utf8"))
  const named = sources.flatMap((source) => [...source.matchAll(metric)].map(([, name]) => name!))
  const laps = sources.flatMap((source) => [...source.matchAll(/\.lap\("([\w-]+)"\)/g)].map(([, lap]) => `time/${lap}`))
  const computed = sources.flatMap((source) =>
    [...source.matchAll(/`([a-z-]+\/[a-z-]*)\$\{(name|channel)\}`/g)].map(
      ([, stem, variable]) => `${stem}<${variable}>`,
    ),
  )
  return [...new Set([...named, ...laps, ...computed])].filter((name) => groups.includes(groupOf(name)))
}

describe("table of metrics", () => {
  it("has every metric that src/ names, and no other", () => {
    const emitted = namesInSources().filter((name) => name !== "time/<name>") // each lap has its own entry
    expect(emitted.filter((name) => !names.includes(name)).sort()).toEqual([])
    expect(names.filter((name) => !emitted.includes(name)).sort()).toEqual([])
  })

  it("has no name of an earlier version", () => {
    expect(names.filter((name) => Object.hasOwn(renamed.metrics, name))).toEqual([])
  })

  it("has titles that differ", () => {
    const titles = names.filter((name) => !name.includes("<")).map(metricTitle)
    expect(titles.filter((title, at) => titles.indexOf(title) !== at)).toEqual([])
    expect(["a/b-c", "episode/boxes", "evaluation/boxes_done", "", "/", "episode/"].map(metricTitle)).toEqual([
      "A b c",
      "Boxes",
      "Boxes done in evaluation",
      "",
      "/",
      "episode/",
    ])
  })

  it("explains metrics that environments report, and knows which are shares", () => {
    expect(metricMeaning("episode/boxes")).toBe(metricDescriptions["episode/<name>"])
    expect(metricMeaning("my-loss/x")).toBeUndefined()
    expect(
      ["episode/success", "group/constant", "evaluation/success-low", "episode/return", "episode/boxes"].map(isShare),
    ).toEqual([true, true, true, false, false])
  })

  it("has descriptions that are one sentence", () => {
    expect(Object.values(metricDescriptions).filter((text) => !/^[A-Z1χ].*\.$/.test(text))).toEqual([])
  })
})

it.each(pages())("$path names only metrics that there are", ({ inline }) => {
  const named = inline.filter((code) => /^[a-z-]+\/[a-z0-9-]+$/.test(code) && groups.includes(groupOf(code)))
  expect(named.filter((name) => !names.includes(name))).toEqual([])
})

// `npx vitest run test/readme/metrics.test.ts -u` writes the page.
it("docs/metrics.md shows the table", async () => {
  await expect(metricsPage()).toMatchFileSnapshot(join(root, "docs/metrics.md"))
})

function metricsPage(): string {
  const sections = groups.map((group) => {
    const rows = names
      .filter((name) => groupOf(name) === group)
      .map((name) => `| \`${name}\` | ${/</.test(name) ? "" : metricTitle(name)} | ${metricDescriptions[name]} |`)
    return [`## ${group}`, "", "| metric | title | meaning |", "| --- | --- | --- |", ...rows, ""].join("\n")
  })
  return [
    "# Metrics",
    "",
    "Numbers in each line of a run's `metrics.jsonl`, in TensorBoard and MLflow, by name; [the dashboard](view.md) shows them by title. Shares are between",
    "0 and 1, times in seconds, lengths in tokens. A metric that does not apply is absent. `<name>` stands for any name. Losses and estimators of your",
    "own may report more ([extending.md](extending.md)).",
    "",
    ...sections,
  ].join("\n")
}

function groupOf(name: string): string {
  return name.split("/", 1)[0]!
}
