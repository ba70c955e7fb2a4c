// Worlds: a configuration each (environment, small model from scratch, SFT on the expert), with settings common to all variants in the world.

const example = (name, more = {}) => ({ name, config: `examples/${name}.yaml`, set: {}, ...more })
const own = (name, more = {}) => ({ name, config: `bench/paper/worlds/${name}.yaml`, set: {}, ...more })
/** Sokoban with larger rooms than examples/sokoban.yaml, which is not solved within a few minutes. */
const sokoban = (more = {}) => ({ name: "sokoban", config: "bench/sokoban.yaml", set: {}, ...more })
const expert = (name) => ({ "environment.expert": name })

/**
 * `guide`: settings of an expert that knows the shortest path, if the expert of SFT has to search. `model`: pretrained model to start from, and
 * `sft: false` if it needs no SFT.
 */
export const worlds = {
  maze: own("maze", { guide: expert("shortest") }),
  // With as little SFT as to start from the level of the paper's models, which solve 4 to 15 % before training.
  "maze-weak": { ...own("maze", { guide: expert("shortest"), set: { "sft.tasks": 20 } }), name: "maze-weak" },
  "two-boxes": own("two-boxes"),
  sokoban: sokoban({ set: { "training.groups": 24, "training.iterations": 40 } }),
  "sokoban-whole": { ...sokoban(), name: "sokoban-whole" },
  "number-line": example("number-line"),
  alfworld: example("alfworld", { guide: expert("plan") }),
  webshop: example("webshop"),
  search: example("search"),
}

/** Variant of a world with so few iterations that a run takes about 40 seconds of one thread. */
const short = ({ name, ...world }, iterations) => ({
  ...world,
  name: `${name}-short`,
  set: { "training.groups": 24, "training.iterations": iterations, "training.evaluation.every": iterations },
})
export const quick = [short(sokoban(), 20), short(example("number-line"), 30)]
export const quickMaze = short(worlds["maze-weak"], 20)

const played = (name, set, more) => example(name, { set, ...more })

/** Worlds with the size and step limits of the paper, which are too hard for a model of a million weights. */
export const paperWorlds = {
  "alfworld, paper": played(
    "alfworld",
    { "environment.size": "large", "environment.maxSteps": 50 },
    { guide: expert("plan") },
  ),
  "webshop, paper": played("webshop", { "environment.size": 1000, "environment.detail": "full" }),
  "search, paper": played("search", { "environment.hops": 2, "environment.topk": 3 }),
  "sokoban, paper": sokoban({ set: { "environment.maxSteps": 15 } }),
  "number-line, paper": played("number-line", { "environment.maxPosition": 5, "environment.maxSteps": 10 }),
}

/** World of a pretrained model: a preset, or a file of its own. The environment variable GIGPO_SMOLLM2 is the path of the model's GGUF file. */
const pretrained = (name, more = {}) => ({
  name,
  config: `examples/presets/${name}-135m.yaml`,
  model: process.env.GIGPO_SMOLLM2 ?? "runs/pretrained/SmolLM2-135M-Instruct.Q4_1.gguf",
  set: {},
  ...more,
})
export const pretrainedWorlds = {
  chest: pretrained("chest"),
  "hidden-chest": pretrained("hidden-chest", { config: "bench/paper/worlds/pretrained/hidden-chest.yaml" }),
  doors: pretrained("doors", { sft: false }),
  maze: pretrained("maze", { name: "maze-rules" }),
  "number-line": pretrained("number-line", {
    name: "number-line-rules",
    config: "bench/paper/worlds/pretrained/number-line.yaml",
    sft: false,
  }),
}

/** Worlds of a vision-language model from scratch, which sees pictures alone. */
export const visionWorlds = [
  ...["sokoban", "number-line", "ez-points"].map((name) => example(`${name}-vision`)),
  // With so few demonstrations that something is left to learn; settings chosen with seed 101.
  example("ez-points-vision", {
    name: "ez-points-vision-few",
    set: { "sft.tasks": 10, "training.iterations": 30, "training.stepsPerUpdate": 256 },
  }),
]

/** Setting in which reinforcement learning undoes SFT: short SFT, a small batch, and no limits on updates. */
export const shortClone = {
  name: "search-short",
  config: "examples/search.yaml",
  set: {
    "sft.tasks": 1500,
    "training.iterations": 80,
    "training.groups": 16,
    "training.updatesPerEpoch": 1,
    "training.rollout.temperature": 1,
    "training.optimizer.warmup": 3,
    "training.optimizer.learningRate": 1e-3,
    "training.evaluation.temperature": 1,
    "training.evaluation.every": 20,
  },
}
