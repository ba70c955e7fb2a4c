// Weight and speed of `gigpo view` and `gigpo report` on large artificial runs, in Chromium (GIGPO_CHROMIUM, or /usr/bin/chromium): 100,352 episodes;
// 8 episodes of 5,000 steps; 50 runs; 20,000 iterations of 76 metrics. Times are from the request of the page to what is named, medians of 3.
// `--only "5,000 steps"` measures one of the runs; it is printed and not written to bench/results.
import { fork } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { gzipSync } from "node:zlib"
import { chromium } from "playwright-core"
import { writeReport } from "../modules/view/serve/report.js"
import { RunFolders } from "../modules/view/serve/run-folders.js"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { makeEpisodes, makeRun } from "./view/made-runs.mjs"

const { values } = parseArgs({ options: { only: { type: "string" } }, strict: false })
const folder = await mkdtemp(join(tmpdir(), "gigpo-view-"))
const runs = {
  "100,352 episodes": (to) => makeEpisodes(to, { iterations: 196, groups: 64, steps: 3, letters: 6 }),
  "5,000 steps": (to) => makeEpisodes(to, { iterations: 1, groups: 1, steps: 5000, letters: 20 }),
  "50 runs": async (to) => {
    for (let run = 0; run < 50; run++) await makeRun(join(to, `run-${run}`), 200, 40, run)
  },
  "20,000 iterations": (to) => makeRun(to, 20_000, 76),
}
const charts = { name: "charts", hash: "#/curves", shown: ".card canvas" }
/** What is waited for in each run, by the id of its first run. */
const places = {
  "100,352 episodes": () => [
    charts,
    {
      name: "list of episodes",
      hash: "#/episodes",
      shown: ".view.episodes [role=row] [role=gridcell], .view.episodes tbody td",
    },
  ],
  "5,000 steps": (id) => [
    { name: "episode, first step", hash: `#/episodes/${id}/1/0/0`, shown: ".outline .row, .step" },
    { name: "episode, step 5,000", hash: `#/episodes/${id}/1/0/0?step=4999`, shown: '.step[data-step="4999"]' },
    { name: "states", hash: `#/graph/${id}/1/0`, shown: ".stage .node, .stage table" },
  ],
  "50 runs": () => [charts, { name: "table of runs", hash: "#/runs", shown: ".view.runs .spark" }],
  "20,000 iterations": () => [charts],
}

const browser = await chromium.launch({
  executablePath: process.env.GIGPO_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
})
const table = [["run", "shown", "first paint, ms", "shown after, ms", "data, MB", "page's heap, MB", "server, MB"]]
const reports = [["run", "report, s", "size, MB"]]
for (const [name, make] of Object.entries(runs)) {
  if (values.only && values.only !== name) continue
  const directory = join(folder, name.replaceAll(/\W+/g, "-"))
  await make(directory)
  const [{ id }] = await (await RunFolders.open([directory])).list()
  const server = fork(new URL("view/server.mjs", import.meta.url), [directory])
  const [{ url }] = await once(server, "message")
  for (const place of places[name](id)) {
    const found = []
    for (let turn = 0; turn < 3; turn++) found.push(await measure(url, place))
    server.send("memory")
    const [{ rss }] = await once(server, "message")
    const middle = (of) => median(found.map((one) => one[of]))
    const megabytes = (bytes) => (bytes / 1e6).toFixed(1)
    table.push([name, place.name, middle("paint").toFixed(0), middle("shown").toFixed(0)])
    table.at(-1).push(megabytes(middle("bytes")), megabytes(middle("heap")), (rss / 1e6).toFixed(0))
    console.log(table.at(-1).join(" | "))
  }
  server.kill()
  const start = performance.now()
  const out = join(folder, "report.html")
  const failed = await writeReport([directory], out, { overwrite: true }).then(
    () => undefined,
    (error) => error.code,
  )
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  reports.push([name, seconds, failed ?? ((await stat(out)).size / 1e6).toFixed(2)])
}
await browser.close()
if (values.only) console.log(reports.at(-1).join(" | "))
await rm(folder, { recursive: true })

/** Opens a place of the page in a context of its own, in which nothing is cached. */
async function measure(url, { hash, shown }) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  let bytes = 0
  // The address has the token in its hash, which the page replaces; the place follows in the second visit.
  await page.goto(url)
  await page.waitForSelector("main .view")
  page.on("response", async (response) => {
    if (response.url().includes("/api/")) bytes += (await response.body().catch(() => Buffer.alloc(0))).length
  })
  await page.goto("about:blank")
  const start = performance.now()
  await page.goto(url.replace(/#.*/, hash), { waitUntil: "commit" })
  await page.waitForSelector(shown, { timeout: 120_000 })
  const after = performance.now() - start
  await page.waitForLoadState("networkidle")
  const { paint, heap } = await page.evaluate(() => {
    globalThis.gc?.()
    const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN
    return { paint, heap: performance.memory.usedJSHeapSize }
  })
  await context.close()
  return { paint, shown: after, heap, bytes }
}

const page = await Promise.all(["main.js", "main.css"].map((name) => readFile(join("dist/view/page", name))))
const weights = page.map(
  (bytes) =>
    `${bytes.length.toLocaleString("en")} (${gzipSync(bytes, { level: 9 }).length.toLocaleString("en")} packed)`,
)

const write = values.only ? () => {} : writeResult
await write(
  "view",
  `# The dashboard on large runs

Medians of 3 visits without a cache, from the request of the page; data are the bodies of answers, unpacked. The server is a process of its own.
Script and style sheet have ${weights.join(" and ")} bytes.
${describeMachine()}

${markdownTable(table)}

${markdownTable(reports)}

Again: \`npm run bench -- view\``,
)
