import { formatRunConfig, type RunConfig } from "../../runs/config.ts"
import { resolveConfig } from "./resolve.ts"

// What a run's folder keeps of its configuration, and what of it may be another when the run goes on.

/** Where and how fast it runs, and where its parts lie. */
export const placeKeys: readonly string[] = [
  // Where a module of one's own lies: what it is, its digest tells.
  ...["environment.use", "agent.use", "training.estimator.use", "training.loss.use", "sft.loss.use"],
  // A run records its date and refuses another.
  "chat.now",
  ...[
    "run",
    "agent.grace",
    "engine.url",
    "engine.plainHttp",
    "engine.wire",
    "engine.patience",
    "engine.contact",
    "engine.deadline",
    "device",
    "threads",
    "microBatchTokens",
    "longestRow",
    "kvCacheBytes",
    "recompute",
    "sharePrefixes",
  ],
]

/** Keys that are younger than a run hold what they stand for where they are left out. */
export function complete(old: RunConfig): object {
  return { ...resolveConfig(formatRunConfig(old), [], "the run's config.json"), precision: old.precision }
}
