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

/** Name of the file with the recorded episodes of an iteration. */
export function episodesFile(iteration: number): string {
  return `iteration-${iteration}.episodes`
}

/** Reads the iteration from the name of a file in the folder of episodes, and whether the file is complete. undefined for other names. */
export function readEpisodesFile(name: string): { readonly iteration: number; readonly whole: boolean } | undefined {
  const [, iteration, temporary] = /^iteration-([1-9]\d{0,14})\.episodes(\.tmp-[0-9a-f]{12,40})?$/.exec(name) ?? []
  return iteration === undefined ? undefined : { iteration: Number(iteration), whole: temporary === undefined }
}
