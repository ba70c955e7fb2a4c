import { basename, dirname } from "node:path"
import { namesIn } from "./inside.ts"

/** What the number of a checkpoint counts: iterations of a training, or updates of a supervised fine-tuning. */
export type CheckpointUnit = "iteration" | "update"

/** Name of a checkpoint's folder, such as "iteration-12", in parts. */
export interface CheckpointName {
  readonly name: string
  readonly unit: CheckpointUnit
  /** Number of completed iterations or updates. */
  readonly count: number
}

const pattern = /^(iteration|update)-(\d+)$/

/** Returns the name of a checkpoint's folder. */
export function checkpointName(count: number, unit: CheckpointUnit = "iteration"): string {
  return `${unit}-${count}`
}

/** Parses the name of a checkpoint's folder; undefined for another name. */
export function parseCheckpointName(name: string): CheckpointName | undefined {
  const [, unit, count] = pattern.exec(name) ?? []
  return unit === undefined ? undefined : { name, unit: unit as CheckpointUnit, count: Number(count) }
}

/** Returns the checkpoints in a folder, intact or damaged, newest first. */
export async function checkpointsIn(parent: string): Promise<CheckpointName[]> {
  const names = await namesIn(dirname(parent), basename(parent))
  return names.flatMap((name) => parseCheckpointName(name) ?? []).sort((a, b) => b.count - a.count)
}
