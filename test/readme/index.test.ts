import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { linksOf, type Page, page, pages, root } from "./pages.ts"

const index = page("docs/index.md")

/** Questions of a newcomer, and the text that answers each: part of a page, beginning with a heading that a link may name. */
const questions: readonly (readonly [question: string, file: string, answer: string])[] = [
  ["How do I resume?", "docs/runs.md", "`gigpo train config.yaml --resume` continues from the last checkpoint"],
  ["What is the success interval?", "docs/evaluation.md", "It is Wilson's interval"],
  ["How do I use my own tokenizer?", "docs/questions.md", "const characters: ChatCodec"],
  ["How much memory?", "docs/devices.md", "`gigpo estimate config.yaml --gpu h100`"],
  ["How do I train only an adapter?", "docs/devices.md", "Pairs of low-rank matrices"],
  ["How do I bring my agent?", "docs/agents.md", "gives that\nclient a different base URL"],
  ["How do I add a metric?", "docs/questions.md", "`episode/<name>` and `evaluation/<name>`"],
  ["Can I use several GPUs?", "docs/gpu.md", "each GPU has a replica of the whole model"],
  ["Can I use several machines?", "docs/scale.md", "the same script runs on an existing engine"],
  ["How do I train a GGUF model?", "docs/models.md", "A GGUF file works wherever a model folder does"],
  ["How do I export to GGUF?", "docs/models.md", "export my-run --as gguf"],
  ["How do I export to Hugging Face?", "docs/questions.md", "already in Hugging Face's layout"],
  ["What does this error mean?", "docs/errors.md", "| `RUN_LOCKED` |"],
  ["How do I compare two runs?", "docs/evaluation.md", "npx gigpo compare"],
]

/** Whether links lead from one page to another. */
function leads(from: Page, to: string, clicks: number): boolean {
  return from.path === to || (clicks > 0 && targets(from).some((target) => leads(target, to, clicks - 1)))
}

it.each(questions)("%s is answered within two clicks from the README", (_, file, answer) => {
  expect(page(file).text).toContain(answer)
  expect(leads(page("README.md"), file, 2)).toBe(true)
})

it.each(questions.filter(([, file]) => file !== "docs/questions.md"))(
  "%s is a question of docs/questions.md, which links to the answer",
  (_, file) => {
    const linked = linksOf(page("docs/questions.md")).map((link) => link.file)
    expect(linked).toContain(file)
    expect(leads(page("README.md"), "docs/questions.md", 1)).toBe(true)
  },
)

it("docs/index.md lists every page", () => {
  const listed = new Set(linksOf(index).map(({ file }) => file))
  expect(pages().filter(({ path }) => path !== index.path && !listed.has(path))).toEqual([])
})

it("docs/questions.md has a question for each of the index's promises", () => {
  const headings = [...page("docs/questions.md").text.matchAll(/^## (.+\?)$/gm)]
  expect(headings.length).toBeGreaterThanOrEqual(12)
})

it("llms.txt is the index (npm run docs:llms writes it)", async () => {
  const { llmsOf }: { llmsOf(index: string): string } = await import(join(root, "scripts/llms.mjs"))
  expect(readFileSync(join(root, "llms.txt"), "utf8")).toBe(llmsOf(index.text))
})

function targets(from: Page): Page[] {
  const files = new Set(linksOf(from).map(({ file }) => file))
  return [...files].filter((file) => file.endsWith(".md")).map(page)
}
