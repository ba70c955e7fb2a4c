import { createHash } from "node:crypto"
import { Readable } from "node:stream"
import { buffer } from "node:stream/consumers"
import { createGzip } from "node:zlib"
import { GigpoError } from "../../util/errors.ts"
import { jsonPieces } from "./json-pieces.ts"
import type { PageFile } from "./page-files.ts"

/** Mark in the first bytes of every report, by which older reports are recognized and replaced. */
export const reportMark = '<meta name="generator" content="gigpo report" />'

/** Line of the page for a part of a report (`inlinedParts`). */
export async function packPart(name: string, value: unknown): Promise<string> {
  const packed = await buffer(Readable.from(jsonPieces(value), { objectMode: false }).pipe(createGzip()))
  return `${name} ${packed.toString("base64")}`
}

/**
 * HTML file with the page and its data. The content security policy allows only the contained scripts and styles, by their digests, and no
 * requests.
 *
 * @param parts - results of `packPart`
 */
export function reportHtml(page: ReadonlyMap<string, PageFile>, parts: readonly string[]): string {
  const read = (name: string) => page.get(name)!.bytes.toString("utf8")
  // Sequences that would end the element or begin a comment only occur in string literals, where an escape is equivalent.
  const script = read("main.js").replace(/<(?=\/script|!--)/gi, "\\x3C")
  const style = read("main.css").replace(/<(?=\/style)/gi, "\\3C ")
  const policy = [
    "default-src 'none'",
    `script-src ${digest(script)}`,
    `style-src ${digest(style)}`,
    "img-src data:",
    "worker-src blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ]
  const head = `${reportMark}\n    <meta http-equiv="Content-Security-Policy" content="${policy.join("; ")}" />`
  const body = `<noscript>This report needs JavaScript. Its script is part of this file and makes no requests.</noscript>
    <script id="data" type="text/plain">\n${parts.join("\n")}\n</script>
    <script type="module">${script}</script>`
  return [
    ['<meta charset="utf-8" />', `<meta charset="utf-8" />\n    ${head}`],
    ['<link rel="stylesheet" href="main.css" />', `<style>${style}</style>`],
    ['<script type="module" src="main.js"></script>', ""],
    ["<body></body>", `<body>\n    ${body}\n  </body>`],
  ].reduce((html, [element, instead]) => replaced(html, element!, instead!), read("index.html"))
}

function replaced(html: string, element: string, instead: string): string {
  const [before, after, ...more] = html.split(element)
  if (after !== undefined && more.length === 0) return `${before}${instead}${after}`
  throw new GigpoError("INTERNAL", `The page's index.html must have ${element} once.`)
}

function digest(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`
}
