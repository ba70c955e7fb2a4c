/** Names of the files and folders of a run. */
export const runFiles = {
  config: "config.json",
  metrics: "metrics.jsonl",
  /** Checkpoint that the run was forked from. */
  fork: "fork.json",
  /** Id of the run on an MLflow server. */
  mlflow: "mlflow.json",
  lock: "run.lock",
  checkpoints: "checkpoints",
  model: "model",
  episodes: "episodes",
  tensorboard: "tensorboard",
} as const

/** Name of an event file of TensorBoard, without the count at the end. */
export function eventFile(seconds: number, host: string, process: number): string {
  return `events.out.tfevents.${seconds}.${host}.${process}`
}

export function isEventFile(name: string): boolean {
  return /^events\.out\.tfevents\.\d+\..*\.\d+\.\d+$/.test(name)
}

/** Recorded episodes: those of training, or those of an evaluation after an iteration. */
export type Recorded = "training" | "evaluation"

/** Name of the file with the recorded episodes of an iteration, or of the evaluation after it. */
export function episodesFile(iteration: number, of: Recorded = "training"): string {
  return `${of === "training" ? "iteration" : "evaluation"}-${iteration}.episodes`
}

/** Reads the name of a file in the folder of episodes: its iteration, and whether it is complete. undefined for other names. */
export function readEpisodesFile(
  name: string,
): { readonly iteration: number; readonly of: Recorded; readonly whole: boolean } | undefined {
  const [, kind, iteration, temporary] =
    /^(iteration-(?=[1-9])|evaluation-(?=[1-9]|0\b))(\d{1,15})\.episodes(\.tmp-[0-9a-f]{12,40})?$/.exec(name) ?? []
  if (iteration === undefined) return undefined
  const of = kind === "iteration-" ? "training" : "evaluation"
  return { iteration: Number(iteration), of, whole: temporary === undefined }
}
