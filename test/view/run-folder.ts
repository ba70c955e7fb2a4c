import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { formatRunConfig } from "../../src/runs/config.ts"
import type { IterationReport } from "../../src/runs/report.ts"

/** A run's folder as far as its configuration and its reports go. */
export async function madeFolder(
  directory: string,
  config: object,
  reports: readonly IterationReport[],
): Promise<string> {
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, "config.json"), formatRunConfig(config))
  await writeFile(join(directory, "metrics.jsonl"), reports.map((report) => `${JSON.stringify(report)}\n`).join(""))
  return directory
}

/** Five seconds an iteration, from 1; evaluated after every other. */
export function reportsOf(count: number): IterationReport[] {
  return Array.from({ length: count }, (_, at): IterationReport => {
    const success = (at + 1) / (count + 1)
    return {
      iteration: at + 1,
      time: new Date(Date.UTC(2026, 0, 1, 0, at, 0, 250)).toISOString(),
      metrics: { "episode/success": success, "episode/return": 10 * success - 1 / 3, "time/run": 5 * (at + 1) },
      ...(at % 2 === 1 && {
        evaluation: {
          ...{ episodes: 50, failed: 1, success, successInterval: [success / 2, (1 + success) / 2] },
          ...{ meanReturn: success, meanSteps: 7.5, metrics: { success, boxes: 2 } },
        },
      }),
    }
  })
}
