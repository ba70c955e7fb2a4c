import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { renamed } from "../../src/options/renamed.ts"
import { isShare, metricDescriptions, metricMeaning, metricTitle } from "../../src/runs/metrics.ts"
import { pages, root } from "./pages.ts"

const names = Object.keys(metricDescriptions)
const groups = [...new Set(names.map(groupOf))]
const metric = /["`]([a-z][a-z0-9-]*\/[a-z0-9]+(?:-[a-z0-9]+)*)["`]/g

/** Text of each file of src/ but the table itself and the names of earlier versions. */
const texts = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !["options/renamed.ts", "runs/metrics.ts"].includes(file))
  .sort()
  .map((file) => ({ file, text: readFileSync(join(root, "src", file), "utf8") }))

/** Metric names in string literals and doc comments of src/, and those that a Stopwatch makes. */
function namesInSources(): string[] {
  const sources = texts.map(({ text }) => text)
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

const evaluationKeys: Readonly<Record<string, string>> = {
  episodes: "`evaluation/episodes`",
  failed: "`evaluation/failed`",
  excluded: "`evaluation/excluded`",
  success: "`evaluation/success`",
  successInterval: "`evaluation/success-low`, `evaluation/success-high`",
  meanReturn: "`evaluation/return`",
  meanSteps: "`evaluation/steps`",
  metrics: "`evaluation/<name>`",
  valid: "`evaluation/valid`",
  completionsTruncated: "share of completions truncated at `rollout.maxCompletionTokens`; in `metrics.jsonl` only",
  failures: "reasons of failed episodes; in `metrics.jsonl` only",
}

/** Texts without comments and destructuring. Commands and the browser only read metrics. */
const reporting = texts
  .filter(({ file }) => !/^cli\/|^view\/(?!data\/scalars)/.test(file))
  .map(({ file, text }) => ({ file, text: text.replace(/^ *\*.*$|const \{[^}]*\} =/gm, "") }))

/** Files that report a metric: as a key, else as a string, else by a computed name. */
function sourcesOf(name: string): string[] {
  const [group, rest] = name.split("/") as [string, string]
  const having = (...words: string[]) =>
    reporting.filter(({ text }) => words.some((word) => text.includes(word))).map(({ file }) => file)
  const keyed = having(`"${name}":`, `"${name}"]: `, `.lap("${rest}")`)
  if (keyed.length > 0) return keyed
  const named = having(`"${name}"`)
  return named.length > 0 ? named : having(`\`${group}/${rest.includes("<") ? rest.split("<")[0] : ""}\${`)
}

function metricsPage(): string {
  const sections = groups.map((group) => {
    const rows = names
      .filter((name) => groupOf(name) === group)
      .map((name) => {
        const links = sourcesOf(name).map((file) => `[${file}](../src/${file})`)
        const title = /</.test(name) ? "" : metricTitle(name)
        return `| \`${name}\` | ${title} | ${metricDescriptions[name]} | ${links.join("<br>")} |`
      })
    return [`## ${group}`, "", "| metric | title | meaning | source |", "| --- | --- | --- | --- |", ...rows, ""].join(
      "\n",
    )
  })
  return [
    "# Metrics",
    "",
    "Numbers that a run reports, by name: `metrics` of each line of `metrics.jsonl`, and scalars of TensorBoard, MLflow, W&B and Trackio. [The dashboard](view.md) shows",
    "them by title. Shares are between 0 and 1, times in seconds, lengths in tokens. A metric that does not apply is absent. `<name>` stands for any name. Losses and",
    "estimators of your own may report more ([extending.md](extending.md)). “Source” is the file that reports the metric.",
    "",
    "An evaluation is the object `evaluation` of a line of `metrics.jsonl`, without the prefix `evaluation/` (type `EvaluationReport`):",
    "",
    ...evaluationRows(),
    "",
    ...sections,
  ].join("\n")
}

/** Keys of an evaluation in metrics.jsonl and the metrics made of them. */
function evaluationRows(): string[] {
  const report = texts.find(({ file }) => file === "runs/report.ts")!.text.split("interface EvaluationReport")[1]!
  const declared = [...report.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, key]) => key!)
  expect(Object.keys(evaluationKeys)).toEqual(declared)
  const rows = Object.entries(evaluationKeys).map(([key, metric]) => `| \`${key}\` | ${metric} |`)
  return ["| key in `metrics.jsonl` | metric or meaning |", "| --- | --- |", ...rows]
}

function groupOf(name: string): string {
  return name.split("/", 1)[0]!
}
