// PyTorch, transformers and Python beside us: only where the environment variable GIGPO_BENCH_PYTHON names a Python that has
// torch and transformers.
import { spawnSync } from "node:child_process"

export const python = process.env.GIGPO_BENCH_PYTHON
export const noPeers = "no peers: set GIGPO_BENCH_PYTHON to a Python with torch and transformers"

/** Runs bench/peers/<script> and returns its measurements, one object a line. */
export function runPeer(script, args = [], env = {}) {
  const { status, stdout, stderr } = spawnSync(python, [`bench/peers/${script}`, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  })
  if (status !== 0) throw new Error(`bench/peers/${script} failed:\n${stderr}`)
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
}

/** MKL takes slower code on CPUs that are not Intel's unless told otherwise; both are shown. */
export const torchModes = [
  ["PyTorch eager", {}],
  ["PyTorch eager, MKL made to use AVX-512", { GIGPO_BENCH_MKL: "avx512" }],
]
