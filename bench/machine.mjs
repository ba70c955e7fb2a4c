// Machine, date and commit of a measurement, and output of results.
import { execFileSync, spawnSync } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { cpus, loadavg } from "node:os"
import { deviceReport } from "gigpo/native"

export const stamp = new Date().toISOString().slice(0, 10)

/** Instruction set and number of threads of the CPU kernels. The instruction set is the widest available one, or that of GIGPO_ISA. */
export const { instructionSet, threads } = deviceReport().cpu

export function describeMachine() {
  const git = (...args) => execFileSync("git", args, { encoding: "utf8" }).trim()
  const commit = `${git("rev-parse", "--short", "HEAD")}${git("status", "--porcelain", "--", "core", "binding", "src") ? "+" : ""}`
  const cpu = `${cpus()[0].model.trim()}, ${threads} cores, ${instructionSet}`
  return `${stamp}, ${cpu}, Node ${process.version}, commit ${commit}, load ${loadavg()[0].toFixed(1)}`
}

/** A table as Markdown; the first row is the header. */
export function markdownTable([header, ...rows]) {
  return [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")
}

/** Writes bench/results/<date>-<name>-<instruction set>.md and prints it: one result per kind of processor. */
export async function writeResult(name, text) {
  await mkdir("bench/results", { recursive: true })
  await writeFile(`bench/results/${stamp}-${name}-${instructionSet}.md`, `${text}\n`)
  console.log(`${text}\n`)
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

/** Builds and runs a program of bench/core, which does not need Node, and returns its output. */
export function runCoreProgram(name, env = {}) {
  const run = (command, ...args) => {
    const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", env: { ...process.env, ...env } })
    if (status !== 0) throw new Error(`${command} ${args.join(" ")}\n${stdout}${stderr}`)
    return stdout
  }
  run("cmake", "-S", ".", "-B", "build-bench", "-DGIGPO_CUDA=OFF")
  run("cmake", "--build", "build-bench", "-j", "2", "--target", `bench_${name}`)
  return run(`build-bench/bench_${name}`, String(threads))
}
