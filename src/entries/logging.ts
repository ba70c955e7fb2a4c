// `gigpo/logging`: logging to TensorBoard, MLflow, W&B and Trackio; writing, reading and conversion of recorded episodes.

import "../check-node.mts"

export type { RecordedEpisode, RecordedGroup } from "../view/data/recorded.ts"
export type { RecordedIteration } from "../view/record/file.ts"
export type { RecordingOptions } from "../view/record/options.ts"
export { type EpisodesRange, readEpisodes, readGroup, readRecordedIterations } from "../view/record/read.ts"
export { type RecordEpisodesOptions, recordEpisodes } from "../view/record/recorder.ts"
export { episodesToJsonl } from "../view/record/to-jsonl.ts"
export { episodesToParquet } from "../view/record/to-parquet.ts"
export { type MlflowOptions, mlflow } from "../view/sinks/mlflow.ts"
export { type TensorBoardOptions, tensorBoard } from "../view/sinks/tensorboard.ts"
export { type TrackioOptions, trackio } from "../view/sinks/trackio.ts"
export { type WandbOptions, wandb } from "../view/sinks/wandb.ts"
