// The worlds: a configuration each (an environment, a small model made from nothing, what it learns from the expert), and what all
// that is compared in it shares.

const example = (name, more = {}) => ({ name, config: `examples/${name}.yaml`, set: {}, ...more })
const own = (name, more = {}) => ({ name, config: `bench/paper/worlds/${name}.yaml`, set: {}, ...more })
const expert = (name) => ({ "environment.expert": name })

/** `guide`: settings of an expert who knows the way, where the one that is cloned has to look for it. */
export const worlds = {
  maze: own("maze", { guide: expert("shortest") }),
  "two-boxes": own("two-boxes"),
  sokoban: example("sokoban", { set: { "training.groups": 24, "training.iterations": 40 } }),
  "number-line": example("number-line"),
  alfworld: example("alfworld", { guide: expert("plan") }),
  webshop: example("webshop"),
  search: example("search"),
}

/** The warm start is short, the batch small, and nothing is held back: where reinforcement undoes what was cloned. */
export const shortClone = {
  name: "search-short",
  config: "examples/search.yaml",
  set: {
    "clone.tasks": 1500,
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
