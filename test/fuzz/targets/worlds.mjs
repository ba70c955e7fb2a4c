// Data of environments: WebShop's catalogues, ALFWorld's games, questions and databases of SQL, and answers of a retrieval
// server. Each is used, as an episode would.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createRequire } from "node:module"
import { join } from "node:path"
import { Game } from "../../../modules/environment/alfworld/game.js"
import { gameFileText, readGameFile } from "../../../modules/environment/alfworld/game-file.js"
import { generateHousehold } from "../../../modules/environment/alfworld/generate/generate.js"
import { httpRetriever } from "../../../modules/environment/search/http-retriever.js"
import { SqlDatabases } from "../../../modules/environment/sql/databases.js"
import { readQuestions } from "../../../modules/environment/sql/questions.js"
import { openCatalogue } from "../../../modules/environment/webshop/catalogue.js"
import { openCatalogueFiles } from "../../../modules/environment/webshop/catalogue-files.js"
import { lines } from "./data.mjs"

const json = (value) => Buffer.from(JSON.stringify(value))
const { signal } = new AbortController()

const products = ["LAMP1", "LAMP2"].map((asin) => ({
  ...{ asin, name: "Lamp", full_description: "Shines.", small_description: ["Pole", "Glow"] },
  ...{ pricing: "$1,010.50 to $1,018.34", product_category: "Shop › Lamps", category: "garden", query: "garden lamps" },
  customization_options: { Color: [{ value: "navy/blue", image: "x" }, { value: "red" }], Size: null },
  images: ["x"],
}))
const attributes = { LAMP1: { attributes: ["bright", "long pole"], instruction: "Find a lamp", instruction_attributes: ["bright"] } } // biome-ignore format: one line
const human = { LAMP1: [{ instruction: "A lamp, please", instruction_attributes: ["bright"], instruction_options: ["red"] }] } // biome-ignore format: one line

export async function prepare(scratch) {
  const path = (name) => join(scratch, name)
  for (const [name, value] of Object.entries({ products, attributes, human }))
    writeFileSync(path(`${name}.json`), json(value))
  async function shop(changed) {
    const files = Object.fromEntries(
      ["products", "attributes", "human"].map((name) => [name, path(changed === name ? "changed" : `${name}.json`)]),
    )
    await openCatalogue(await openCatalogueFiles(files))
  }

  const household = generateHousehold(7)
  async function play(bytes) {
    const world = Game.parse(readGameFile(bytes.toString("utf8"), "game"), "game").start()
    for (let step = 0; step < 3 && !world.won; step++) world.step(world.admissible()[step] ?? "look")
  }

  const databases = new SqlDatabases({ timeLimit: 1, memoryLimit: 256, processes: 1 })
  mkdirSync(path("town"))
  const Database = createRequire(import.meta.url)("better-sqlite3")
  const town = new Database(path("town/town.sqlite"))
  town.exec("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t (b); CREATE VIEW v AS SELECT b FROM t")
  for (let at = 0; at < 200; at++) town.prepare("INSERT INTO t (b) VALUES (?)").run(`text ${at}`)
  town.close()
  const ask = async (file) => {
    for (const sql of ["SELECT * FROM t ORDER BY b", "SELECT count(*) FROM v WHERE b LIKE '%9'"])
      await databases.query({ file }, sql)
  }

  let answer = Buffer.alloc(0)
  const server = createServer((_, response) => response.end(answer)).listen(0, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  const options = { requestForm: "batch", timeout: 20, attempts: 1, delay: 0 }
  const retriever = httpRetriever(`http://127.0.0.1:${server.address().port}/retrieve`, options)
  const found = [
    { document: { id: "1", contents: '"Paris"\nA town.' }, score: 1.5 },
    { document: { id: 2, title: "Rome", text: "A town." }, score: 0 },
  ]

  const question = { db_id: "town", question: "How many?", query: "SELECT count(*) FROM t" }
  const changed = (use) => async (bytes, name) => {
    writeFileSync(path(name), bytes)
    await use(path(name))
  }
  const readers = {
    products: [json(products), changed(() => shop("products"))],
    attributes: [json(attributes), changed(() => shop("attributes"))],
    human: [json(human), changed(() => shop("human"))],
    "game.tw-pddl": [Buffer.from(gameFileText(household)), play],
    "town.sqlite": [readFileSync(path("town/town.sqlite")), changed(ask)],
    "questions.json": [json([question, question]), changed((file) => readQuestions(file, scratch))],
    "questions.jsonl": [lines(question, question), changed((file) => readQuestions(file, scratch))],
    answer: [
      json({ result: [found, found] }),
      async (bytes) => {
        answer = bytes
        await retriever.retrieve("town", 2, signal)
      },
    ],
  }
  return {
    seeds: Object.entries(readers).map(([name, [bytes]]) => ({ name, bytes })),
    mayThrow: ({ name }) => name === "RetrieverFailure",
    async run({ name, bytes }) {
      await readers[name][1](bytes, ["products", "attributes", "human"].includes(name) ? "changed" : `changed-${name}`)
    },
  }
}
