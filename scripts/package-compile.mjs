#!/usr/bin/env node
// What prebuildify runs in node-gyp's place: cmake-js builds the addon as it goes into the npm package, and leaves it where node-gyp
// would, in build/Release below the folder that prebuildify works in. One binary serves every Node (Node-API 8), every CPU of its
// kind and every GPU; GIGPO_CUDA=OFF in the environment makes one without GPU code.
//
//   npm run package:native
import { spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { sourcesDigest } from "./package-sources.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const { arch } = parseArgs({ options: { arch: { type: "string" } }, strict: false }).values
if (arch !== process.arch) throw new Error(`A binary for ${arch} is built on such a machine, not on ${process.arch}.`)

const sources = sourcesDigest(root)
const cmakeJs = createRequire(import.meta.url).resolve("cmake-js/bin/cmake-js")
const options = [`--CDGIGPO_CUDA=${process.env.GIGPO_CUDA ?? "ON"}`, "--CDGIGPO_PREBUILT=ON"]
const args = [cmakeJs, "rebuild", "--directory", root, "--out", "build", ...options]
const { status, error } = spawnSync(process.execPath, args, { stdio: "inherit" })
if (error) throw error
if (status === 0 && sourcesDigest(root) !== sources)
  throw new Error("The sources changed while they were built. Build again.")
process.exitCode = status ?? 1
