import { existsSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { type Browser, chromium, type Page } from "playwright-core"
import { type Inlined, inlinedParts } from "../../../src/view/data/inlined.ts"
import { readPage } from "../../../src/view/serve/page-files.ts"
import { packPart, reportHtml } from "../../../src/view/serve/report-html.ts"

const executablePath = process.env.GIGPO_CHROMIUM ?? "/usr/bin/chromium"
const bundle = "dist/view/page"

/** Why the page cannot be tried here, if it cannot. */
export const noBrowser = !existsSync(executablePath)
  ? "no Chromium in /usr/bin (GIGPO_CHROMIUM names another)"
  : !existsSync(`${bundle}/main.js`)
    ? "needs dist: npm run build:ts"
    : undefined

export async function openBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath, args: ["--no-sandbox"] })
}

export interface OpenedPage {
  readonly page: Page
  /** Those that the page has thrown or logged; what the content policy forbids is among them. */
  readonly errors: readonly string[]
  close(): Promise<void>
}

/** A page of its own in a context of its own: nothing is remembered from one test to the next. */
export async function openPage(
  browser: Browser,
  { width = 1280, height = 800, colorScheme = "light" as "light" | "dark" } = {},
): Promise<OpenedPage> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme })
  const page = await context.newPage()
  const errors: string[] = []
  page.on("pageerror", (error) => errors.push(String(error)))
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()))
  return { page, errors, close: () => context.close() }
}

/** The page as a report holds it, with these data, under the policy that a report has. */
export async function openInlined(
  browser: Browser,
  data: Inlined,
  { hash = "", ...options }: NonNullable<Parameters<typeof openPage>[1]> & { readonly hash?: string } = {},
): Promise<OpenedPage> {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-page-"))
  await writeFile(join(folder, "report.html"), await inlinedPage(data))
  const opened = await openPage(browser, options)
  await opened.page.goto(pathToFileURL(join(folder, "report.html")).href + hash)
  await opened.page.waitForSelector("main .view", { timeout: 20_000 }).catch((cause) => {
    throw new Error(`The page shows nothing: ${opened.errors.join("; ")}`, { cause })
  })
  return {
    ...opened,
    async close() {
      await opened.close()
      await rm(folder, { recursive: true })
    },
  }
}

/** The page as a server gives it; `answer` says what stands under a path of the API, or throws. */
export async function openServed(
  browser: Browser,
  answer: (path: string, query: URLSearchParams) => unknown,
  { hash = "", ...options }: Parameters<typeof openInlined>[2] = {},
): Promise<OpenedPage> {
  const opened = await openPage(browser, options)
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; worker-src blob:"
  await opened.page.route("http://127.0.0.1:1/**", async (route) => {
    const { pathname, searchParams } = new URL(route.request().url())
    if (!pathname.startsWith("/api/")) {
      const name = pathname === "/" ? "index.html" : pathname.slice(1)
      if (!existsSync(join(bundle, name))) return await route.fulfill({ status: 404 })
      return await route.fulfill({
        path: join(bundle, name),
        headers: { "content-security-policy": policy, ...typeOf(name) },
      })
    }
    try {
      const json = await answer(pathname.slice("/api/".length), searchParams)
      await route.fulfill(json === undefined ? { status: 404 } : { json })
    } catch (error) {
      await route.fulfill({ status: 500, json: { error: { message: error instanceof Error ? error.message : "" } } })
    }
  })
  await opened.page.goto(`http://127.0.0.1:1/${hash}`)
  await opened.page.waitForSelector("main .view", { timeout: 20_000 })
  return opened
}

function typeOf(name: string): Record<string, string> {
  const types: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css" }
  return { "content-type": types[name.split(".").at(-1)!]! }
}

async function inlinedPage(data: Inlined): Promise<string> {
  const parts = Array.from(inlinedParts(data), ([name, value]) => packPart(name, value))
  return reportHtml(await readPage(), await Promise.all(parts))
}

/** Opens a view by its link, and waits until it has taken the place of the one before it. */
export async function showView(page: Page, name: string): Promise<void> {
  await page.click(`nav a[data-view=${name}]`)
  await page.waitForSelector(`main .view.${name}`)
}
