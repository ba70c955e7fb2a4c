// What is compared: each table is worlds × variants × seeds. A variant that stands in several tables is run once.
import { baselines } from "./recipes.mjs"
import * as variants from "./variants.mjs"
import { shortClone, worlds } from "./worlds.mjs"

/** Seeds whose results are not reported: what is chosen is chosen by them. */
const hidden = [101, 102]

export const tables = {
  undoing: {
    title: "Why reinforcement after short cloning undoes it",
    worlds: [shortClone],
    variants: variants.undoing,
    against: "rate 1e-3",
    columns: { "success in training": "episode/success", readable: "reply/valid", entropy: "policy/entropy" },
    seeds: [1, 2, 3],
  },
  "tuning-maze": {
    title: "Learning rate and normalisation of each estimator in the maze",
    worlds: [worlds.maze],
    variants: variants.tuning([1e-4, 3e-4, 1e-3]),
    seeds: hidden,
  },
  baselines: {
    title: "Every baseline on Sokoban (6 × 6, one box)",
    text: `The learning rate and the like were chosen for GiGPO and are the same for all but where bench/paper/recipes.mjs says otherwise, so this
shows that each learns and none diverges, not which is best.`,
    worlds: [worlds.sokoban],
    variants: baselines,
    against: "GRPO",
    columns: { entropy: "policy/entropy", "explained variance": "critic/explained-variance" },
    seeds: [1, 2, 3],
  },
}
