import { existsSync, readFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { entryNames } from "../entries/entries.ts"
import { noBrowser, openBrowser, openPage } from "../view/browser/page.ts"
import { buildSite, linksOf, noSite, type SitePage, sitePages } from "./built.ts"

// The site of `npm run docs`, built into a folder of its own. The build itself rejects public names and members without a comment.

describe.skipIf(noSite)(`the documentation site${noSite ? ` (${noSite})` : ""}`, () => {
  let site: string
  let pages: readonly SitePage[]
  beforeAll(async () => {
    site = await buildSite()
    pages = sitePages(site)
  }, 900_000)
  afterAll(() => site && rm(site, { recursive: true, force: true }))

  it("has a page of every entry point", () => {
    const modules = entryNames.map((entry) => (entry === "index" ? "gigpo" : `gigpo_${entry.replaceAll("/", "_")}`))
    const paths = pages.map(({ path }) => path)
    expect(modules.filter((name) => !paths.includes(`modules/${name}.html`))).toEqual([])
  })

  it("lists the options of an estimator with their help", () => {
    const html = pages.find(({ path }) => path === "interfaces/gigpo_advantages.GigpoOptions.html")?.html
    expect(html).toContain("Weight ω of the step advantage, at least 0. Default: 1.")
  })

  it("has no link that leads nowhere", () => {
    const ids = new Map(
      pages.map(({ path, html }) => [path, new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id))]),
    )
    const dead = pages.flatMap((page) =>
      linksOf(page)
        .filter(
          ({ to, anchor }) =>
            !existsSync(join(site, to)) || (anchor !== "" && ids.has(to) && !ids.get(to)!.has(anchor)),
        )
        .map(({ to, anchor }) => `${page.path}: ${to}#${anchor}`),
    )
    expect(dead).toEqual([])
    expect(pages.length).toBeGreaterThan(300)
  })

  describe.skipIf(noBrowser)(`in a browser${noBrowser ? ` (${noBrowser})` : ""}`, () => {
    let [browser, server]: [Browser, Server] = [] as never
    let start: string
    beforeAll(async () => {
      server = serve(site)
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      start = `http://127.0.0.1:${(server.address() as AddressInfo).port}/index.html`
      browser = await openBrowser()
    })
    afterAll(async () => {
      await browser?.close()
      server?.close()
    })

    /** Opens the start page, and closes it after the test. The page must report no error. */
    const visit = async (visitor: (page: Page) => Promise<void>) => {
      const opened = await openPage(browser)
      opened.page.setDefaultTimeout(240_000) // only a page that hangs takes this long
      try {
        await opened.page.goto(start)
        await visitor(opened.page)
        expect(opened.errors).toEqual([])
      } finally {
        await opened.close()
      }
    }

    it("follows links: start page, common questions, the answer", () =>
      visit(async (page) => {
        await page.locator(".col-content").getByRole("link", { name: "Common questions" }).click()
        await page.locator(".col-content").getByRole("link", { name: "Adapters", exact: true }).click()
        await page.locator("#adapters-lora").waitFor()
        expect(page.url()).toMatch(/documents\/devices\.html#adapters-lora$/)
      }))

    it.each([
      ["success interval", "Evaluation"],
      ["GigpoOptions", "GigpoOptions"],
      ["RUN_LOCKED", "Errors"],
    ])("finds %s by its search", (words, result) =>
      visit(async (page) => {
        await page.locator("#tsd-search-trigger").click()
        await page.locator("#tsd-search-input").fill(words)
        const found = page.locator("#tsd-search-results li", { hasText: new RegExp(`(^|\\.)${result}$`) })
        await found.first().click()
        await page.locator("h1", { hasText: result }).first().waitFor()
      }),
    )

    it("shows a function with its parameters and errors", () =>
      visit(async (page) => {
        await page.goto(new URL("functions/gigpo.initializeModel.html", start).href)
        const text = await page.locator(".col-content").innerText()
        expect(text).toContain("BAD_ENVIRONMENT")
        expect(text).toContain("setup")
      }))
  })
})

function serve(site: string): Server {
  const types: Readonly<Record<string, string>> = {
    html: "text/html",
    js: "text/javascript",
    css: "text/css",
    svg: "image/svg+xml",
  }
  return createServer((request, response) => {
    if (request.url === "/favicon.ico") return response.writeHead(204).end() // asked for by the browser, not by a page
    const path = join(site, decodeURI(new URL(request.url!, "http://localhost").pathname))
    if (!path.startsWith(site) || !existsSync(path)) return response.writeHead(404).end()
    response.setHeader("content-type", types[path.split(".").at(-1)!] ?? "application/octet-stream")
    return response.end(readFileSync(path))
  })
}
