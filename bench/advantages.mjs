// Time of the estimators `gigpoAdvantages` and `grpoAdvantages` on plain arrays.
import { Random } from "gigpo"
import { gigpoAdvantages, grpoAdvantages } from "gigpo/advantages"
import { Bench } from "tinybench"
import { describeMachine, markdownTable, writeResult } from "./machine.mjs"

const table = [["steps", "estimator", "ms"]]
for (const tasks of [16, 256]) {
  const random = new Random(4)
  const steps = Array.from({ length: tasks * 8 * 50 }, (_, i) => ({
    task: Math.floor(i / 400),
    episode: Math.floor(i / 50) % 8,
    anchor: `state ${random.below(160)} of ${Math.floor(i / 400)}`,
    reward: i % 50 === 49 ? random.below(2) * 10 : 0,
  }))
  const bench = new Bench({ time: 1000, warmupTime: 200 })
  bench.add("gigpoAdvantages", () => gigpoAdvantages(steps)).add("grpoAdvantages", () => grpoAdvantages(steps))
  await bench.run()
  for (const { name, result } of bench.tasks)
    table.push([steps.length.toLocaleString("en"), name, result.latency.p50.toFixed(2)])
}

await writeResult("advantages", `# Advantages\n\nMedians. ${describeMachine()}\n\n${markdownTable(table)}`)
