import { editDistance } from "../edit-distance.ts"
import { GigpoError } from "../errors.ts"
import { type AlfworldOptions, alfworld } from "./alfworld/alfworld.ts"
import { type BlackjackOptions, blackjack } from "./cards/blackjack.ts"
import { type EzPointsOptions, ezPoints } from "./cards/ez-points.ts"
import { type NumberLineOptions, numberLine } from "./cards/number-line.ts"
import { type Points24Options, points24 } from "./cards/points24.ts"
import type { Environment } from "./environment.ts"
import { openEnv } from "./openenv/openenv.ts"
import type { OpenEnvOptions } from "./openenv/options.ts"
import { type SearchOptions, search } from "./search/search.ts"
import { type SokobanOptions, sokoban } from "./sokoban/sokoban.ts"
import { type WebShopOptions, webshop } from "./webshop/webshop.ts"

// One line an environment. Every factory checks its own options, so what a configuration file says may go in unread.
const factories: Readonly<Record<string, (options?: object) => Environment | Promise<Environment>>> = {
  sokoban: (options) => sokoban(options as SokobanOptions),
  alfworld: (options) => alfworld(options as AlfworldOptions),
  "number-line": (options) => numberLine(options as NumberLineOptions),
  "ez-points": (options) => ezPoints(options as EzPointsOptions),
  points24: (options) => points24(options as Points24Options),
  blackjack: (options) => blackjack(options as BlackjackOptions),
  openenv: (options) => openEnv(options as OpenEnvOptions),
  search: (options) => search(options as SearchOptions),
  webshop: (options) => webshop(options as WebShopOptions),
}

/** The names that `openEnvironment` knows. */
export const environmentNames: readonly string[] = Object.keys(factories)

/**
 * Makes a built-in environment; some read files or build an index first. Rejects with `BAD_CONFIG` for an unknown name or bad
 * options, `BAD_DATA` or `IO` where files are at fault.
 */
export async function openEnvironment(name: string, options?: object): Promise<Environment> {
  if (!Object.hasOwn(factories, name)) {
    throw new GigpoError(
      "BAD_CONFIG",
      `There is no environment "${name}"; did you mean "${nearest(name, environmentNames)}"? ` +
        `Known: ${environmentNames.join(", ")}.`,
    )
  }
  return factories[name]!(options)
}

function nearest(word: string, candidates: readonly string[]): string {
  const distances = candidates.map((candidate) => editDistance(word.toLowerCase(), candidate))
  return candidates[distances.indexOf(Math.min(...distances))]!
}
