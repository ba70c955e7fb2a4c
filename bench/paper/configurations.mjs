// Environments as the examples have them, and beside them with the paper's horizons.
import { readOptions } from "../../dist/options/read.js"
import maze, { options as mazeFields } from "./maze.mjs"

const bare = { rules: false, thinking: "off" }
const explores = { expert: { expert: "explore" }, guide: { expert: "plan" } }
const rooms = { size: { receptacles: [4, 5], objects: [4, 6] }, ...bare }
const fourTypes = [
  "pick_and_place_simple",
  "pick_clean_then_place_in_recep",
  "pick_heat_then_place_in_recep",
  "pick_cool_then_place_in_recep",
]
const shop = { name: "webshop", size: 200, detail: "short", resultsPerPage: 3, admissible: false, ...bare }
const ways = { expert: { expert: "explore" }, guide: { expert: "shortest" } }

/** `expert` is who plays, in haste, and is cloned; `guide` is who says what a good episode needs, where that is another. */
export const configurations = {
  "sokoban 6x6": { environment: { name: "sokoban", size: [6, 6], boxes: 1, ...bare } },
  "sokoban two boxes": { environment: { name: "sokoban", size: [6, 6], boxes: 2, maxSteps: 30, ...bare } },
  "alfworld 20": { environment: { name: "alfworld", ...rooms, taskTypes: fourTypes, maxSteps: 20 }, ...explores },
  "households 50": { environment: { name: "alfworld", maxSteps: 50, ...bare }, ...explores },
  "webshop 10": { environment: { ...shop, maxSteps: 10 } },
  "webshop 15": { environment: { ...shop, maxSteps: 15 } },
  search: { environment: { name: "search", worlds: 400, entities: 60, hops: 1, topk: 1, ...bare } },
  "number-line": { environment: { name: "number-line", ...bare } },
  "maze 4x4": { environment: { name: "maze" }, ...ways },
  "maze 5x5": { environment: { name: "maze", size: 5, loops: 2, maxSteps: 50 }, ...ways },
}

/** With the defaults of its table, as a configuration opens it. */
export function openMaze(options) {
  return maze(readOptions("maze", options, mazeFields))
}
