// Measurements of PyTorch, transformers and Python for comparison. Available only if the environment variable GIGPO_BENCH_PYTHON is the path of a
// Python with torch and transformers.
import { spawnSync } from "node:child_process"
import { instructionSet } from "./machine.mjs"

export const python = process.env.GIGPO_BENCH_PYTHON
export const noPeers = "no peers: set GIGPO_BENCH_PYTHON to a Python with torch and transformers"

/** Runs bench/peers/<script> and returns its measurements, one object per line of output. */
export function runPeer(script, args = [], env = {}) {
  const { status, stdout, stderr } = spawnSync(python, [`bench/peers/${script}`, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  })
  if (status !== 0) throw new Error(`bench/peers/${script} failed:\n${stderr}`)
  return stdout
    .split("\n")
    .filter((line) => line.startsWith('{"'))
    .map((line) => JSON.parse(line))
}

/** Limits of torch's and its libraries' instruction sets, so that both sides use the same one on any processor. */
const limits = {
  avx512_bf16: {},
  avx512: { ONEDNN_MAX_CPU_ISA: "AVX512_CORE" },
  avx2: { ATEN_CPU_CAPABILITY: "avx2", ONEDNN_MAX_CPU_ISA: "AVX2", MKL_ENABLE_INSTRUCTIONS: "AVX2" },
}
export const held = limits[instructionSet] ?? limits.avx2
const widest = instructionSet.startsWith("avx512") ? "AVX-512" : "AVX2"

/** MKL uses slower code on CPUs of other vendors than Intel by default; both modes are measured. */
export const torchModes = [
  [`PyTorch eager, at most ${widest}`, held],
  [`PyTorch eager, MKL made to use ${widest}`, { ...held, GIGPO_BENCH_MKL: "avx512" }],
]
