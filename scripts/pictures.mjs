// Makes the pictures of gigpo view in docs: every view of a run, at the widths of a laptop and a phone.
//   node scripts/pictures.mjs <run> [iteration/group]
// Needs Chromium (GIGPO_CHROMIUM, or /usr/bin/chromium).
import { mkdir, writeFile } from "node:fs/promises"
import { chromium } from "playwright-core"
import { RunFolders } from "../modules/view/serve/run-folders.js"
import { openView } from "../modules/view/serve/view.js"

const [run, task = ""] = process.argv.slice(2)
if (run === undefined) throw new Error("node scripts/pictures.mjs <run> [iteration/group]")
const to = "docs/pictures"
const [{ id }] = await (await RunFolders.open([run])).list()
const views = {
  curves: "#/curves",
  episodes: "#/episodes",
  episode: `#/episodes/${id}/${task}/1?step=1`,
  states: `#/graph/${id}/${task}`,
  settings: "#/settings?find=rollout", // not the paths of this machine
}
const sizes = { laptop: { width: 1280, height: 720 }, phone: { width: 390, height: 844 } }

await mkdir(to, { recursive: true })
const view = await openView([run])
const browser = await chromium.launch({
  executablePath: process.env.GIGPO_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
})
const take = async (name, hash, viewport, colorScheme) => {
  const page = await browser.newPage({ viewport, colorScheme, reducedMotion: "reduce" })
  await page.goto(view.url)
  await page.waitForSelector("main .view")
  await page.evaluate((to) => {
    location.hash = to
  }, hash)
  await page.waitForLoadState("networkidle")
  await page.waitForTimeout(1500) // for the layout worker, and for drawing in pieces
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 82 })
  await writeFile(`${to}/${name}.webp`, data, "base64")
  await page.close()
}
for (const [name, hash] of Object.entries(views))
  for (const [size, viewport] of Object.entries(sizes)) await take(`${name}-${size}`, hash, viewport, "light")
await take("states-dark", views.states, sizes.laptop, "dark")
await browser.close()
await view.close()
