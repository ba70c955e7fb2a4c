import { createHash } from "node:crypto"
import { Readable } from "node:stream"
import { buffer } from "node:stream/consumers"
import { createGzip } from "node:zlib"
import { GigpoError } from "../../util/errors.ts"
import { jsonPieces } from "./json-pieces.ts"
import type { PageFile } from "./page-files.ts"

/** Stands in the first bytes of every report: what has it may be replaced by a newer one. */
export const reportMark = '<meta name="generator" content="gigpo report" />'

/** A part of a report (`inlinedParts`) as it stands in the page. */
export async function packPart(name: string, value: unknown): Promise<string> {
  const packed = await buffer(Readable.from(jsonPieces(value), { objectMode: false }).pipe(createGzip()))
  return `${name} ${packed.toString("base64")}`
}

/**
 * The page with its data in one file. It can ask nobody for anything: its policy lets these very scripts and styles in, by their
 * digests, and nothing else.
 *
 * @param parts - as `packPart` has made them.
 */
export function reportHtml(page: ReadonlyMap<string, PageFile>, parts: readonly string[]): string {
  const read = (name: string) => page.get(name)!.bytes.toString("utf8")
  // What would end the element, or begin a comment in it, stands in texts alone, where an escape is the same.
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
  const body = `<noscript>This report is drawn by the script that it holds: allow it. It asks nobody for anything.</noscript>
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
