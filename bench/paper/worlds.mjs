// The worlds: a configuration each (an environment, a small model made from nothing, what it learns from the expert), and what all
// that is compared in it shares.

const example = (name, more = {}) => ({ name, config: `examples/${name}.yaml`, set: {}, ...more })
const own = (name, more = {}) => ({ name, config: `bench/paper/worlds/${name}.yaml`, set: {}, ...more })
/** Sokoban with more cells than examples/sokoban.yaml has: not solved in a few minutes. */
const sokoban = (more = {}) => ({ name: "sokoban", config: "bench/sokoban.yaml", set: {}, ...more })
const expert = (name) => ({ "environment.expert": name })

/** `guide`: settings of an expert who knows the way, where the one that is cloned has to look for it. */
export const worlds = {
  maze: own("maze", { guide: expert("shortest") }),
  // The same from a start as poor as that of the paper's models, which solve 4 to 15 % before training.
  "maze-weak": { ...own("maze", { guide: expert("shortest"), set: { "sft.tasks": 20 } }), name: "maze-weak" },
  "two-boxes": own("two-boxes"),
  sokoban: sokoban({ set: { "training.groups": 24, "training.iterations": 40 } }),
  "sokoban-whole": { ...sokoban(), name: "sokoban-whole" },
  "number-line": example("number-line"),
  alfworld: example("alfworld", { guide: expert("plan") }),
  webshop: example("webshop"),
  search: example("search"),
}

/** Two that are quick, played so briefly that a run takes some 40 seconds of a thread. */
const short = ({ name, ...world }, iterations) => ({
  ...world,
  name: `${name}-short`,
  set: { "training.groups": 24, "training.iterations": iterations, "training.evaluation.every": iterations },
})
export const quick = [short(sokoban(), 20), short(example("number-line"), 30)]

const played = (name, set, more) => example(name, { set, ...more })

/** The worlds as large and as long as the paper plays them, which a model of a million weights cannot. */
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

/** The warm start is short, the batch small, and nothing is held back: where reinforcement undoes what was cloned. */
export const shortClone = {
  name: "search-short",
  config: "examples/search.yaml",
  set: {
    "sft.tasks": 1500,
    "training.iterations": 80,
    "training.groups": 16,
    "training.updates": 1,
    "training.rollout.temperature": 1,
    "training.optimizer.warmup": 3,
    "training.optimizer.learningRate": 1e-3,
    "training.evaluation.temperature": 1,
    "training.evaluation.every": 20,
  },
}
