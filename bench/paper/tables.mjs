// What is compared: each table is worlds × variants × seeds. A variant that stands in several tables is run once.
import { everyAlgorithm } from "./algorithms.mjs"
import { baselines } from "./recipes.mjs"
import * as variants from "./variants.mjs"
import { quick, shortClone, worlds } from "./worlds.mjs"

/** Seeds whose results are not reported: what is chosen is chosen by them. */
const hidden = [101, 102]

const ten = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

/** What decides whether credit of steps can matter: docs/learning.md. */
const shares = {
  compared: "step-group/compared",
  "on loops": "episode/wasted",
  late: "episode/late",
  "cut off": "episode/truncated",
}

export const tables = {
  undoing: {
    title: "Why reinforcement after short cloning undoes it",
    worlds: [shortClone],
    variants: variants.undoing,
    against: "rate 1e-3",
    columns: { "success in training": "episode/success", readable: "action/valid", entropy: "policy/entropy" },
    seeds: [1, 2, 3],
  },
  "tuning-maze": {
    title: "Learning rate and normalisation of each estimator in the maze",
    worlds: [worlds.maze],
    variants: variants.tuning([1e-4, 3e-4, 1e-3], ["none", "sample"]),
    seeds: hidden,
  },
  tuning: {
    title: "Learning rate of each estimator in the other worlds",
    worlds: [worlds.webshop, worlds["number-line"]],
    variants: variants.tuning([1e-4, 3e-4], ["none"]),
    seeds: hidden.slice(0, 1),
  },
  margin: {
    title: "GiGPO beside GRPO",
    text: `The mazes have ten seeds: five did not tell, and what one seed differs from another there said that ten might.`,
    worlds: [
      { ...worlds["maze-weak"], seeds: ten },
      { ...worlds.maze, seeds: ten },
      worlds.alfworld,
      worlds.webshop,
      worlds.sokoban,
      worlds["number-line"],
    ],
    variants: variants.margin,
    against: "GRPO",
    columns: shares,
    finals: 4,
    seeds: [1, 2, 3, 4, 5],
  },
  examples: {
    title: "The examples at their defaults",
    worlds: [worlds.alfworld, worlds.webshop, worlds["sokoban-whole"], worlds["number-line"], worlds.search],
    variants: variants.margin.slice(0, 1),
    columns: { ...shares, entropy: "policy/entropy" },
    finals: 4,
    seeds: [1, 2, 3, 4, 5],
  },
  paper: {
    title: "What the paper compares, in the two quickest worlds that tell them apart",
    worlds: [worlds["maze-weak"], worlds.sokoban],
    variants: variants.paper,
    against: "GRPO",
    columns: { entropy: "policy/entropy", steps: "episode/steps" },
    finals: 4,
    seeds: [1, 2, 3, 4, 5],
  },
  parts: {
    title: "What each part of GiGPO gives",
    worlds: [worlds["maze-weak"]],
    variants: variants.parts,
    against: "GiGPO",
    columns: {
      steps: "episode/steps",
      "rollout, s": "time/rollout",
      "credit, s": "time/advantage",
      "update, s": "time/update",
    },
    dynamics: {
      "steps in a step group": "step-group/size",
      "alone in theirs": "step-group/singletons",
      compared: "step-group/compared",
      "on loops": "episode/wasted",
    },
    finals: 4,
    seeds: [1, 2, 3],
  },
  baselines: {
    title: "Every baseline on Sokoban (6 × 6, one box)",
    text: `The learning rate and the like were chosen for GiGPO and are the same for all but where bench/paper/recipes.mjs says otherwise, so this
shows that each learns and none diverges, not which is best.`,
    worlds: [worlds.sokoban],
    variants: baselines,
    against: "GRPO, deviation",
    columns: { entropy: "policy/entropy", "explained variance": "critic/explained-variance" },
    seeds: [1, 2, 3],
  },
  algorithms: {
    title: "Every named estimator and loss, briefly",
    text: `What src/algorithms has, each briefly from the same cloned model, with the world's learning rate: this shows that each runs and moves the
policy, not which is best. Where an estimator wants to be told more than rewards it is what bench/paper/told.mjs makes of them. “Did not
learn”: not better in the mean over seeds, where a share of 256 tasks is known to 3 %.`,
    worlds: quick,
    variants: everyAlgorithm,
    columns: { entropy: "policy/entropy" },
    totals: { tokens: ["episode/count", "episode/steps", "completion/tokens"], seconds: ["time/iteration"] },
    gains: true,
    keepFailures: true,
    again: "`npm run bench:algorithms -- --repeat '<world>/<row>'`",
    seeds: [1, 2],
  },
}
