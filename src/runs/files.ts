/** What stands in a run's folder. */
export const runFiles = {
  config: "config.json",
  metrics: "metrics.jsonl",
  /** Of what run it is a fork. */
  fork: "fork.json",
  /** Which run of an MLflow server it is. */
  mlflow: "mlflow.json",
  lock: "run.lock",
  checkpoints: "checkpoints",
  model: "model",
  episodes: "episodes",
  tensorboard: "tensorboard",
} as const

/** TensorBoard's event files, by process: the file's name without the last part, a count. */
export function eventFile(seconds: number, host: string, process: number): string {
  return `events.out.tfevents.${seconds}.${host}.${process}`
}

export function isEventFile(name: string): boolean {
  return /^events\.out\.tfevents\.\d+\..*\.\d+\.\d+$/.test(name)
}

/** Recorded episodes of an iteration, in the folder of episodes: the file's name. */
export function episodesFile(iteration: number): string {
  return `iteration-${iteration}.episodes`
}

/** The iteration that a file in the folder of episodes is of, and whether it is one that was never finished; undefined for files of others. */
export function readEpisodesFile(name: string): { readonly iteration: number; readonly whole: boolean } | undefined {
  const [, iteration, temporary] = /^iteration-([1-9]\d{0,14})\.episodes(\.tmp-[0-9a-f]{12,24})?$/.exec(name) ?? []
  return iteration === undefined ? undefined : { iteration: Number(iteration), whole: temporary === undefined }
}
