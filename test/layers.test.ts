import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { expect, it } from "vitest"

// Each folder imports only what stands below it; files at the top of src/ are rooms of their own.
const below: Record<string, readonly string[]> = {
  errors: [],
  random: ["errors"],
  state: [],
  native: ["errors"],
  device: ["native"],
  version: [],
  "edit-distance": [],
  "linked-abort": [],
  "dense-ids": [],
  "largest-reward": [],
  pace: [],
  joined: [],
  canonical: [],
  visible: [],
  format: [],
  options: ["errors", "edit-distance"],
  files: ["errors", "version"],
  retrieval: ["errors", "pace"],
  algorithms: ["errors", "options"],
  environment: ["errors", "random", "state", "largest-reward", "linked-abort", "pace", "options", "retrieval"],
  tokenizer: ["errors", "pace", "options", "files", "environment", "model-files"],
  "model-files": ["errors", "files", "native"],
  grammar: ["errors", "canonical"],
  tinker: ["errors"],
  engine: [
    "errors",
    "joined",
    "random",
    "state",
    "native",
    "linked-abort",
    "pace",
    "options",
    "files",
    "model-files",
    "grammar",
    "tinker",
  ],
  loss: ["errors", "joined", "random", "state", "options", "engine"],
  kernels: ["errors", "native", "options", "dense-ids", "engine", "loss"],
  credit: [
    "errors",
    "joined",
    "random",
    "pace",
    "state",
    "largest-reward",
    "options",
    "dense-ids",
    "engine",
    "kernels",
  ],
  rollout: [
    "errors",
    "joined",
    "random",
    "state",
    "options",
    "linked-abort",
    "pace",
    "environment",
    "tokenizer",
    "engine",
  ],
  server: [
    "errors",
    "joined",
    "canonical",
    "random",
    "state",
    "version",
    "linked-abort",
    "visible",
    "options",
    "files",
    "environment",
    "engine",
    "model-files",
    "grammar",
    "tinker",
    "tokenizer",
    "rollout",
  ],
  data: ["errors", "joined", "canonical", "options", "environment", "engine", "tokenizer", "server"],
  training: [
    "errors",
    "joined",
    "random",
    "state",
    "version",
    "linked-abort",
    "pace",
    "options",
    "files",
    "model-files",
    "environment",
    "tokenizer",
    "engine",
    "loss",
    "credit",
    "rollout",
    "server",
    "data",
  ],
  panel: [
    "errors",
    "canonical",
    "random",
    "version",
    "linked-abort",
    "pace",
    "options",
    "files",
    "environment",
    "tokenizer",
    "engine",
    "rollout",
    "server",
    "training",
  ],
  view: [
    "errors",
    "joined",
    "random",
    "version",
    "linked-abort",
    "pace",
    "visible",
    "format",
    "options",
    "files",
    "environment",
    "tokenizer",
    "engine",
    "credit",
    "rollout",
    "server",
    "data",
    "training",
  ],
  vectors: ["errors", "random", "dense-ids", "options", "engine", "kernels", "loss", "credit", "rollout", "training"],
  replay: ["errors", "random", "credit", "retrieval", "environment"],
  cli: [
    "errors",
    "version",
    "random",
    "linked-abort",
    "pace",
    "visible",
    "format",
    "native",
    "device",
    "options",
    "algorithms",
    "files",
    "model-files",
    "environment",
    "tokenizer",
    "engine",
    "kernels",
    "loss",
    "credit",
    "rollout",
    "data",
    "training",
    "server",
    "panel",
    "view",
  ],
}

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))
const room = (file: string) => file.split("/")[0]!.replace(/\.ts$/, "")

it("every folder imports only from the layers below it", () => {
  const wrong: string[] = []
  for (const file of files) {
    if (file === "index.ts") continue
    const allowed = below[room(file)]
    expect(allowed, `src/${file} stands in no known layer`).toBeDefined()
    for (const [, target] of readFileSync(join("src", file), "utf8").matchAll(/from "(\.[^"]+)"/g)) {
      const other = room(relative("src", join("src", dirname(file), target!)))
      if (other !== room(file) && !allowed!.includes(other)) wrong.push(`${file} imports ${target}`)
    }
  }
  expect(wrong).toEqual([])
})

it("only native.ts loads the addon, and only one header includes napi.h", () => {
  const loaders = files.filter((file) => readFileSync(join("src", file), "utf8").includes("node-gyp-build"))
  expect(loaders).toEqual(["native.ts"])
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
