// Checks that the packages work on a machine that has only a JavaScript runtime. Installs them in an empty project without a compiler, as npm does
// from its registry, does there what a new user does (package-steps.mjs), type-checks a program, and prints sizes.
//
//   npm run package && npm run package:check                                  # with this Node
//   npm run package:check -- /path/to/node22 /path/to/node24 bun "deno run -A"  # with these
//   npm run package:check -- "qemu-aarch64 -L /usr/aarch64-linux-gnu /path/to/arm64/node"
//   npm run package:check -- "/usr/lib/wine/wine64 /path/to/node.exe"
//
// GIGPO_SMOLLM2, a GGUF file, adds a pretrained model. docs/installation.md names where it and the runtimes come from.
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { basename, dirname, join, resolve } from "node:path"
import { Runtime, wordsOf } from "./package-runtime.mjs"
import { cli, journey, playSql, pretrained, serve, train, view } from "./package-steps.mjs"
import { mainTarball, makeProject, npm, root, run, timeout, userEnvironment } from "./package-user.mjs"
import { packageName } from "./platforms.mjs"

const commands = process.argv.length > 2 ? process.argv.slice(2) : [process.execPath]
const builders = ["cc", "gcc", "c++", "g++", "clang", "clang++", "cmake", "make", "ninja", "nvcc", "python3", "git"]
const kilobytes = (bytes) => `${Math.round(bytes / 1000).toLocaleString("en-US")} kB`
const scratch = mkdtempSync(join(tmpdir(), "package-check-"))
const registry = spawn(process.execPath, [join(root, "scripts/package-registry.mjs")], {
  stdio: ["ignore", "pipe", "inherit"],
})
try {
  const [address] = await once(registry.stdout, "data")
  const tarball = mainTarball()
  console.log(`${basename(tarball)}: ${kilobytes(statSync(tarball).size)}`)
  for (const [index, command] of commands.entries()) {
    const project = join(scratch, `project${index}`)
    makeProject(project)
    writeFileSync(join(project, ".npmrc"), `${packageName("").slice(0, -1)}:registry=${address}`)
    await check(command, project, tarball)
  }
  console.log("The packages work.")
} finally {
  registry.kill()
  rmSync(scratch, { recursive: true, force: true })
}

async function check(command, project, tarball) {
  const words = wordsOf(command)
  const env = bareEnvironment(words, `${project}-path`)
  const runtime = new Runtime(words, project, env)
  const { name, version, platform } = runtime
  console.log(`\n${name} ${version} on ${platform}`)
  install(runtime, tarball)
  printSizes(join(project, "node_modules"))
  assertInstalled(project, packageName(platform))

  const gigpo = (...args) => runtime.run(cli, ...args)
  const { ok, findings } = JSON.parse(gigpo("doctor", "--json"))
  for (const { name, state, value } of findings) console.log(`  ${state} ${name}: ${value}`)
  if (!ok) throw new Error("gigpo doctor found a problem.")
  const model = process.env.GIGPO_SMOLLM2 && resolve(process.env.GIGPO_SMOLLM2)
  if (!model) console.log("  without a pretrained model: set GIGPO_SMOLLM2")
  journey(runtime, model)
  train(gigpo)
  await serve(runtime, "demo/run")
  await view(runtime, "demo/run")
  if (!runtime.isNative) return
  if (model) await pretrained(runtime, model)
  playSql(runtime)
  runtime.run(npm, "exec", "--", "gigpo", "--version")
  checkTypes(project)
  runExample(runtime)
}

/** Environment with the runtime and a shell, without compilers and build tools; on Windows with what is beside Node and part of the system. */
function bareEnvironment(words, bin) {
  const node = words.length === 1 ? words[0] : process.execPath
  if (process.platform === "win32") {
    const { PATH: _path, ...rest } = userEnvironment()
    return { ...rest, Path: `${dirname(node)};${process.env.SystemRoot}\\System32` }
  }
  mkdirSync(bin)
  symlinkSync(node, join(bin, "node"))
  symlinkSync("/bin/sh", join(bin, "sh"))
  const env = { ...userEnvironment(), PATH: bin, WINEDEBUG: "-all" }
  const found = builders.filter((name) => spawnSync("/bin/sh", ["-c", `command -v ${name}`], { env }).status === 0)
  if (found.length > 0) throw new Error(`The bare environment has ${found}.`)
  return env
}

/** Installs as the runtime's own npm does; for a runtime without npm, this Node's npm with the properties of its platform. */
function install({ isNative, words, project, env, os, cpu, libc }, tarball) {
  const node = isNative ? words[0] : process.execPath
  const target = isNative ? [] : [`--os=${os}`, `--cpu=${cpu}`, ...(libc ? [`--libc=${libc}`] : [])]
  const args = [npm, "install", "--no-audit", "--no-fund", ...target, tarball]
  const installed = spawnSync(node, args, { cwd: project, env, encoding: "utf8", timeout })
  // Ignored: npm's warnings about settings of its user.
  const warnings = installed.stderr
    .split("\n")
    .filter((line) => line !== "" && !/Unknown \w+ config|^npm notice/.test(line))
  if (installed.status !== 0 || warnings.length > 0)
    throw new Error(`npm install ended with ${installed.signal ?? installed.status}:\n${installed.stderr}`)
}

/** Of the packages for platforms, only the one that fits. */
function assertInstalled(project, name) {
  const scope = join(project, "node_modules", dirname(name))
  const found = readdirSync(scope).map((one) => `${dirname(name)}/${one}`)
  if (found.join() !== name) throw new Error(`npm installed [${found}] instead of ${name}.`)
}

/** Type-checks a program in strict projects with both kinds of module resolution, by the repository's compiler. */
function checkTypes(project) {
  const program = `import type { Environment, TrainOptions, TrainSetup } from "gigpo"
  import { type GigpoStep, gigpoAdvantages } from "gigpo/advantages"
  import { sokoban } from "gigpo/environments/sokoban"
export const environment = sokoban({ rules: false }) as Environment
export const steps: readonly GigpoStep[] = []
export const result = gigpoAdvantages(steps)
export const good: Partial<TrainSetup<unknown>> = { iterations: 1 }
// @ts-expect-error: there is no such option
export const bad: TrainOptions = { iteration: 1 }
`
  writeFileSync(join(project, "program.ts"), program)
  const tsc = createRequire(import.meta.url).resolve("typescript/package.json")
  for (const [module, moduleResolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ]) {
    const options = { module, moduleResolution, target: "es2022", lib: ["es2023", "esnext.disposable"], strict: true }
    const tools = { noEmit: true, types: ["node"], typeRoots: [join(root, "node_modules/@types")] }
    const config = join(project, `tsconfig.${moduleResolution}.json`)
    writeFileSync(config, JSON.stringify({ compilerOptions: { ...options, ...tools }, files: ["program.ts"] }))
    run(process.execPath, [join(dirname(tsc), "bin/tsc"), "-p", config], { cwd: project })
    console.log(`  types hold with moduleResolution ${moduleResolution}`)
  }
}

/** Runs the README's program unchanged, if this Node runs TypeScript. */
function runExample(runtime) {
  const { project } = runtime
  if (runtime.run("-p", "process.features.typescript ?? false").trim() === "false") return
  copyFileSync(join(project, "node_modules/gigpo/examples/guess.ts"), join(project, "guess.ts"))
  const success = runtime.run("guess.ts").match(/success: ([\d.]+)/)?.[1]
  if (success === undefined) throw new Error("examples/guess.ts did not evaluate.")
  console.log(`  examples/guess.ts: success ${success}`)
}

function printSizes(modules) {
  const sizes = readdirSync(modules).flatMap((name) => {
    if (name.startsWith(".")) return []
    const names = name.startsWith("@") ? readdirSync(join(modules, name)).map((inner) => join(name, inner)) : [name]
    return names.map((one) => [one, folderSize(join(modules, one))])
  })
  const total = sizes.reduce((sum, [, size]) => sum + size, 0)
  const list = sizes.sort(([, a], [, b]) => b - a).map(([name, size]) => `${name} ${kilobytes(size)}`)
  console.log(`  node_modules: ${kilobytes(total)}: ${list.join(", ")}`)
}

function folderSize(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
}
