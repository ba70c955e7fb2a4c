// `gigpo/environments/sokoban`: box-pushing puzzles.

import "../../check-node.cts"

export { type SokobanOptions, type SokobanTask, sokoban } from "../../environment/sokoban/sokoban.ts"
