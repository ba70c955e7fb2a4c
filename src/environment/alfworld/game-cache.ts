import { setImmediate } from "node:timers/promises"
import type { Game } from "./game.ts"

/** Cache of recently used games. A game is read once for all episodes of its task. */
export class GameCache<Task> {
  readonly #load: (task: Task) => Game
  readonly #size: number
  /** Games in order of use, the least recently used first. */
  readonly #games = new Map<string, Game>()
  #turn: Promise<unknown> = Promise.resolve()

  constructor(load: (task: Task) => Game, size: number) {
    this.#load = load
    this.#size = size
  }

  /** As `now`, but reads each game in a separate turn of the event loop. */
  async get(task: Task): Promise<Game> {
    const key = JSON.stringify(task)
    if (!this.#games.has(key)) {
      const turn = this.#turn.then(() => (this.#games.has(key) ? undefined : setImmediate()))
      this.#turn = turn
      await turn
    }
    return this.now(task)
  }

  now(task: Task): Game {
    const key = JSON.stringify(task)
    const game = this.#games.get(key) ?? this.#load(task)
    this.#games.delete(key)
    this.#games.set(key, game)
    if (this.#games.size > this.#size) this.#games.delete(this.#games.keys().next().value!)
    return game
  }
}
