// A JavaScript runtime as package-check.mjs is given it: a command of one word (/path/to/node22, bun) or several ("deno run -A",
// "qemu-aarch64 -L /usr/aarch64-linux-gnu /path/to/node", "wine64 node.exe").
import { spawn, spawnSync } from "node:child_process"
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { timeout } from "./package-user.mjs"
import { platformOf, thisPlatform } from "./platforms.mjs"

/** What a runtime prints about itself. */
const question = `const { platform, arch, versions, report } = process
const libc = platform !== "linux" ? undefined : report.getReport().header.glibcVersionRuntime ? "glibc" : "musl"
const name = ["bun", "deno"].find((one) => versions[one]) ?? "node"
console.log(JSON.stringify({ name, version: versions[name], os: platform, cpu: arch, libc }))
`

/** Words of a command, which is found from other folders and without this process's PATH, too. */
export function wordsOf(command) {
  const [word, ...words] = existsSync(command) ? [command] : command.split(" ")
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, word))
    .find((file) => existsSync(file))
  return [existsSync(word) ? word : (found ?? word), ...words].map((one) => (existsSync(one) ? resolve(one) : one))
}

/** A runtime that runs programs in `project`. */
export class Runtime {
  constructor(words, project, env) {
    Object.assign(this, { words, project, env })
    writeFileSync(join(project, "question.mjs"), question)
    Object.assign(this, JSON.parse(this.run("question.mjs")))
    this.platform = platformOf(this)
  }

  /** Whether this is Node for the system of this machine. A Node for musl also runs beside glibc, but npm then looks for packages for glibc. */
  get isNative() {
    return this.words.length === 1 && this.name === "node" && this.platform === thisPlatform()
  }

  /** Runs a program to its end and returns its output. Throws an error with all output if it fails. */
  run(...args) {
    // Files, because Node for Windows cannot open Wine's pipes.
    const files = ["output", "errors"].map((name) => join(this.project, `${name}.txt`))
    const descriptors = files.map((file) => openSync(file, "w"))
    const [word, ...words] = this.words
    const { status, signal, error } = spawnSync(word, [...words, ...args], {
      ...{ cwd: this.project, env: this.env, timeout },
      stdio: ["ignore", ...descriptors],
    })
    for (const descriptor of descriptors) closeSync(descriptor)
    if (error) throw error
    const [output, errors] = files.map((file) => readFileSync(file, "utf8"))
    if (status !== 0) throw new Error(`${args.join(" ")} ended with ${signal ?? status}:\n${output}${errors}`)
    return output
  }

  /** Starts a server, and calls `use` with the lines that it printed as soon as there are `count`. Ends the server afterwards. */
  async serve(args, count, use) {
    const [file, errors] = ["serving", "serving-errors"].map((name) => join(this.project, `${name}.txt`))
    const descriptors = [file, errors].map((one) => openSync(one, "w"))
    const [word, ...words] = this.words
    const child = spawn(word, [...words, ...args], {
      ...{ cwd: this.project, env: this.env, stdio: ["ignore", ...descriptors] },
    })
    for (const descriptor of descriptors) closeSync(descriptor)
    try {
      const deadline = Date.now() + timeout
      for (;;) {
        const lines = readFileSync(file, "utf8").split(/\r?\n/).slice(0, -1)
        if (lines.length >= count) return await use(lines)
        if (child.exitCode !== null || Date.now() > deadline)
          throw new Error(`${args.join(" ")} said:\n${readFileSync(errors, "utf8")}`)
        await sleep(100)
      }
    } finally {
      child.kill("SIGKILL")
    }
  }
}
