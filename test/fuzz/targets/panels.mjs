// Files of benchmarks, which are opened, and of their evaluations, which are compared.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openBenchmark } from "../../../modules/benchmark/benchmark.js"
import { compareEvaluations } from "../../../modules/benchmark/compare.js"
import { createBenchmark } from "../../../modules/benchmark/create.js"
import { readEvaluation } from "../../../modules/benchmark/evaluation-file.js"
import { lines } from "./data.mjs"

const digest = "0123456789abcdef".repeat(4)
const header = {
  ...{
    evaluation: 1,
    gigpo: "0.0.0",
    benchmark: "doors@1",
    digests: { environment: digest, prompt: digest, benchmark: digest },
  },
  ...{
    model: { name: "runs/a/model" },
    tasks: 3,
    repeats: 2,
    seed: 7,
    settings: { temperature: 0.4, environment: { history: 2 } },
  },
}
const episodes = [0, 0, 1, 1, 2, 2].map((task, at) => ({
  ...{ task, repeat: at % 2, key: `task ${task}`, kind: "place", outcome: "terminated", success: at % 3 === 0 },
  ...{ return: at, steps: 3, metrics: { success: Number(at % 3 === 0) }, valid: 3, cut: 0 },
}))

export async function prepare(scratch) {
  const [pinned, whole] = [join(scratch, "benchmark.json"), join(scratch, "whole.jsonl")]
  await createBenchmark(pinned, {
    name: "mine@1",
    description: "Mine.",
    environment: "number-line",
    options: {},
    tasks: 12,
  })
  const evaluation = lines(header, ...episodes)
  writeFileSync(whole, evaluation)
  const readers = {
    "benchmark.json": async (path) => await openBenchmark(path),
    "evaluation.jsonl": async (path) => compareEvaluations(await readEvaluation(whole), await readEvaluation(path)),
  }
  return {
    seeds: [
      { name: "benchmark.json", bytes: readFileSync(pinned) },
      { name: "evaluation.jsonl", bytes: evaluation },
    ],
    async run({ name, bytes }) {
      const path = join(scratch, `changed-${name}`)
      writeFileSync(path, bytes)
      await readers[name](path)
    },
  }
}
