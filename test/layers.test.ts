import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { expect, it } from "vitest"

/** Modules of src/, lowest first: a module imports only from lines above its own. */
const layers = [
  ["secrets", "util"],
  ["files", "http", "images", "json", "native", "options", "retrieval", "tinker"],
  ["hub"],
  ["environment", "grammar", "model-files"],
  ["image-processor"],
  ["engine", "tokenizer"],
  ["chat", "loss", "rollout"],
  ["data", "endpoint", "engine-server", "export", "kernels", "runs"],
  ["agents", "credit"],
  ["algorithms", "training"],
  ["benchmark", "sft", "view"],
  ["cli"],
  ["entries"],
]
const levels = new Map(layers.flatMap((modules, level) => modules.map((name) => [name, level] as const)))

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => /\.ts$/.test(name))
const moduleOf = (file: string) => file.split("/")[0]!

/** Imports of a file from other modules, as paths in src/. */
function importsOf(file: string): string[] {
  const text = readFileSync(join("src", file), "utf8")
  const targets = [...text.matchAll(/from "(\.[^"]+)"|import\("(\.[^"]+)"\)/g)].map(([, one, other]) => one ?? other!)
  return targets.map((target) => relative("src", join("src", dirname(file), target)))
}

it("every module is in a layer", () => {
  expect([...new Set(files.map(moduleOf))].sort()).toEqual([...levels.keys()].sort())
})

it("every module imports only from the layers below it", () => {
  const wrong = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => moduleOf(target) !== moduleOf(file))
      .filter((target) => !(levels.get(moduleOf(target))! < levels.get(moduleOf(file))!))
      .map((target) => `${file} imports ${target}`),
  )
  expect(wrong).toEqual([])
})

it("files that other modules import are those of public-files.txt: a new one is a decision (vitest -u writes the file)", async () => {
  const targets = files.flatMap((file) => importsOf(file).filter((target) => moduleOf(target) !== moduleOf(file)))
  const lines = [...new Set(targets)].sort().map((target) => `${target}\n`)
  await expect(lines.join("")).toMatchFileSnapshot("public-files.txt")
})

it("only load.ts loads the addon, and only one header includes napi.h", () => {
  const loaders = files.filter((file) => readFileSync(join("src", file), "utf8").includes("node-gyp-build"))
  expect(loaders).toEqual(["native/load.ts"])
  const native = ["binding", "core", "cuda"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  )
  const sources = native.filter((name) => /\.(h|cpp|cu|cuh)$/.test(name))
  expect(sources.filter((name) => /#include [<"]napi\.h/.test(readFileSync(name, "utf8")))).toEqual([
    "binding/napi_setup.h",
  ])
  // The core knows neither Node nor CUDA headers.
  const foreign = /#include [<"](napi|node_api|cuda|binding\/|cuda\/)/
  expect(sources.filter((name) => name.startsWith("core/") && foreign.test(readFileSync(name, "utf8")))).toEqual([])
})
