#!/usr/bin/env node
// Builds the addon for the npm package. prebuildify runs this script in place of node-gyp. cmake-js writes the addon to build/Release below
// prebuildify's working folder, as node-gyp would. One binary supports all versions of Node with Node-API 8, all CPUs of its architecture and all
// GPUs. GIGPO_CUDA=OFF builds it without GPU code.
//
//   npm run package:native
import { spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { sourcesDigest } from "./package-sources.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const { arch } = parseArgs({ options: { arch: { type: "string" } }, strict: false }).values
if (arch !== process.arch)
  throw new Error(`A binary for ${arch} must be built on such a machine, not on ${process.arch}.`)

const sources = sourcesDigest(root)
const cmakeJs = createRequire(import.meta.url).resolve("cmake-js/bin/cmake-js")
const options = [`--CDGIGPO_CUDA=${process.env.GIGPO_CUDA ?? "ON"}`, "--CDGIGPO_PREBUILT=ON"]
const args = [cmakeJs, "rebuild", "--directory", root, "--out", "build", ...options]
const { status, error } = spawnSync(process.execPath, args, { stdio: "inherit" })
if (error) throw error
if (status === 0 && sourcesDigest(root) !== sources)
  throw new Error("The sources changed while they were built. Build again.")
process.exitCode = status ?? 1
