import type { BenchmarkDefinition } from "./definition.ts"
import { knownDigests } from "./digests.ts"

type Shipped = Omit<BenchmarkDefinition, "digests" | "keys">

/** Benchmark of all games of a split of ALFWorld, in the order of their paths. */
function alfworldGames(split: "seen" | "unseen", count: number): Shipped {
  return {
    name: `alfworld/${split}@1`,
    about: `ALFWorld's ${count} games of valid_${split}, in the order of their paths`,
    environment: "alfworld",
    // Benchmarks do not train, so the training games are not read.
    options: { testSplit: `valid_${split}`, trainSplit: "none", maxSteps: 50 },
    places: ["data"],
    tasks: { count, sorted: true },
  }
}

function households(
  split: "seen" | "unseen" | "small",
  count: number,
  options: BenchmarkDefinition["options"],
): Shipped {
  const rooms = { seen: "in rooms that training knows", unseen: "in rooms never trained on", small: "in small rooms" }
  return {
    name: `households/${split}@1`,
    about: `${count} generated ALFWorld households ${rooms[split]}`,
    environment: "alfworld",
    options: { testSplit: "valid_seen", size: "medium", wording: "move", scenes: 480, maxSteps: 50, ...options },
    places: [],
    tasks: { count },
  }
}

function cards(
  environment: "number-line" | "ez-points" | "points24" | "blackjack",
  count: number,
  about: string,
  options: BenchmarkDefinition["options"],
): Shipped {
  const tasks = environment === "blackjack" ? { count } : { count, distinct: true as const }
  return { name: `cards/${environment}@1`, about, environment, options, places: [], tasks }
}

const shipped: readonly Shipped[] = [
  alfworldGames("seen", 140),
  alfworldGames("unseen", 134),
  households("seen", 140, {}),
  households("unseen", 134, { testSplit: "valid_unseen" }),
  households("small", 256, {
    size: { receptacles: [4, 5], objects: [4, 6] },
    taskTypes: [
      "pick_and_place_simple",
      "pick_clean_then_place_in_recep",
      "pick_heat_then_place_in_recep",
      "pick_cool_then_place_in_recep",
    ],
    maxSteps: 20,
  }),
  {
    name: "webshop/test@1",
    about: "WebShop's 500 test goals with their prices, in its catalogue of 1,000 products",
    environment: "webshop",
    options: { goals: "synthetic", resultsPerPage: 10, maxSteps: 15, reward: "success", anchor: "page" },
    places: ["data"],
    tasks: { count: 500 },
  },
  {
    name: "shop/test@1",
    about: "500 goals of a generated shop of 1,000 products",
    environment: "webshop",
    options: { size: 1000, detail: "full", catalogueSeed: 1, resultsPerPage: 10, maxSteps: 15, reward: "success" },
    places: [],
    tasks: { count: 500 },
  },
  {
    name: "shop/short@1",
    about: "128 goals of a generated shop with short pages, for small models",
    environment: "webshop",
    options: { size: 200, detail: "short", catalogueSeed: 1, resultsPerPage: 3, maxSteps: 10, reward: "success" },
    places: [],
    tasks: { count: 128 },
  },
  {
    name: "search/world@1",
    about: "512 questions of one and two hops about an invented world of 300 entities",
    environment: "search",
    options: { entities: 300, hops: "mixed", worlds: 1, worldSeed: 1, topk: 3, match: "em", maxSteps: 4 },
    places: [],
    tasks: { count: 512 },
  },
  {
    name: "search/worlds@1",
    about: "256 questions of one hop about worlds that training never asks about, for small models",
    environment: "search",
    options: { entities: 60, hops: 1, worlds: 400, worldSeed: 1, topk: 1, match: "em", maxSteps: 4 },
    places: [],
    tasks: { count: 256 },
  },
  {
    name: "sokoban/6x6@1",
    about: "256 rooms of 6 × 6 cells with one box, none of whose layouts training meets",
    environment: "sokoban",
    options: { size: [6, 6], boxes: 1, searchDepth: 30, maxSteps: 15, heldOut: "layout" },
    places: [],
    tasks: { count: 256, distinct: true },
  },
  {
    name: "sokoban/two-boxes@1",
    about: "256 rooms of 7 × 7 cells with two boxes, none of whose layouts training meets",
    environment: "sokoban",
    options: { size: [7, 7], boxes: 2, searchDepth: 60, maxSteps: 40, heldOut: "layout" },
    places: [],
    tasks: { count: 256, distinct: true },
  },
  cards("number-line", 30, "all 30 starts on a line from 0 to 5", { maxPosition: 5, maxSteps: 10 }),
  cards("ez-points", 19, "all 19 hands of two cards", { reward: "verl-agent", maxSteps: 8 }),
  cards("points24", 256, "256 solvable hands of four cards", { solvable: "only", maxSteps: 22 }),
  cards("blackjack", 512, "512 deals, cards not yet drawn included", { reward: "verl-agent", maxSteps: 15 }),
  {
    name: "sql/shops@1",
    about: "256 questions of all kinds about invented shops",
    environment: "sql",
    options: { maxSteps: 4, maxRows: 10 },
    places: [],
    tasks: { count: 256 },
  },
]

/** Definitions of the built-in benchmarks. */
export const shippedBenchmarks: readonly BenchmarkDefinition[] = shipped.map((benchmark) => ({
  ...benchmark,
  digests: knownDigests[benchmark.name]!,
}))
