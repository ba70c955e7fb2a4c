// Cost of building and searching a BM25 index of generated texts. `--documents 1000,100000` sets the sizes.
// Words consist of random syllables and are drawn by Zipf's law (frequency of word r about 1 / r); 60 to 110 words per text.
import { setImmediate } from "node:timers/promises"
import { parseArgs } from "node:util"
import { Random } from "../modules/entries/index.js"
import { generatedProducts } from "../modules/environment/webshop/generate/generate.js"
import { productText } from "../modules/environment/webshop/product-text.js"
import { Bm25Index } from "../modules/retrieval/bm25.js"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"

const { values } = parseArgs({
  options: { documents: { type: "string", default: "1000,100000,1000000" } },
  strict: false,
})
const vocabulary = 200_000
const words = makeWords(vocabulary)
const fast = xorshift(7)

const table = [["texts", "build, s", "memory, MB", "longest block, ms", "search, median ms", "slowest ms"]]
for (const count of values.documents.split(",").map(Number)) {
  await measure(`${count.toLocaleString("en")} by Zipf's law`, texts(count), () => text(4 + (fast() % 8)))
  const products = generatedProducts({ size: count, seed: 1, detail: "full" })
  const title = () => products.read(fast() % count).product.title
  await measure(`${count.toLocaleString("en")} products of WebShop's generator`, productTexts(products), title)
}

await writeResult(
  "retrieval",
  `# BM25 search

Texts of 60 to 110 words, ${vocabulary.toLocaleString("en")} different ones by Zipf's law, with queries of 4 to 11 words drawn alike; and
products, with titles as queries. Top 50. Build includes making the texts; memory is the process's peak so far. ${describeMachine()}

${markdownTable(table)}`,
)

async function measure(name, documents, query) {
  const { seconds, block, index } = await watched(() => Bm25Index.build(documents))
  const memory = process.resourceUsage().maxRSS / 1024
  const times = Array.from({ length: 200 }, () => {
    const wanted = query()
    const started = performance.now()
    index.search(wanted, 50)
    return performance.now() - started
  })
  const figures = [seconds.toFixed(2), memory.toFixed(0), block.toFixed(0), median(times).toFixed(2)]
  table.push([name, ...figures, Math.max(...times).toFixed(2)])
}

function* productTexts(products) {
  for (let i = 0; i < products.size; i++) {
    const { product } = products.read(i)
    yield { id: product.asin, text: productText(product) }
  }
}

function* texts(count) {
  for (let i = 0; i < count; i++) yield { id: String(i), text: text(60 + (fast() % 51)) }
}

function text(length) {
  let result = ""
  for (let i = 0; i < length; i++) {
    // Uniform in the logarithm: rank r with probability about 1 / r.
    const rank = Math.floor(Math.exp((fast() / 2 ** 32) * Math.log(vocabulary)))
    result += `${words[rank - 1]}${i % 12 === 11 ? ". " : " "}`
  }
  return result
}

function makeWords(count) {
  const random = new Random(5)
  const [onsets, vowels, codas] = [
    "b d f g k l m n p r s t v st tr pl".split(" "),
    "a e i o u ai ou".split(" "),
    ["", "", "n", "r", "s", "l"],
  ]
  const pick = (list) => list[random.below(list.length)]
  const made = new Set()
  while (made.size < count) {
    const syllables = Array.from({ length: 1 + random.below(4) }, () => pick(onsets) + pick(vowels) + pick(codas))
    made.add(syllables.join("") + pick(["", "", "", "s", "ing", "ed", "ation", "ness"]))
  }
  return [...made].sort((a, b) => a.length - b.length)
}

/** Duration of the work, and the longest block of the event loop. */
async function watched(work) {
  let [running, block] = [true, 0]
  const watch = (async () => {
    for (let last = performance.now(); running; last = performance.now()) {
      await setImmediate()
      block = Math.max(block, performance.now() - last)
    }
  })()
  const started = performance.now()
  const index = await work()
  const seconds = (performance.now() - started) / 1000
  running = false
  await watch
  return { seconds, block, index }
}

function xorshift(seed) {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
}
