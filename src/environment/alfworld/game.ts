import type { GameFile } from "./game-file.ts"

/** One household with its rules and goal, parsed once and shared by all who play it. Immutable. */
export class Game {
  /** Throws `BAD_DATA` naming the source where a text is corrupt. */
  static parse(_file: GameFile, _source = "the game"): Game {
    throw new Error("not yet")
  }

  start(): World {
    throw new Error("not yet")
  }

  /** Display name of an object, e.g. "drawer 1". */
  name(_id: string): string {
    throw new Error("not yet")
  }

  /** The facts of a predicate at the start, as tuples of ids (lower case, as PDDL reads them), sorted. */
  facts(_predicate: string): readonly (readonly string[])[] {
    throw new Error("not yet")
  }
}

/** One running game. */
export class World {
  /** What the player reads at the start. */
  readonly text: string = ""

  /** The commands that do something now, sorted. */
  admissible(): readonly string[] {
    throw new Error("not yet")
  }

  /** Carries out a command and returns what the player reads; "Nothing happens." where it is not admissible. */
  step(_command: string): string {
    throw new Error("not yet")
  }

  /** Whether the goal holds. */
  get won(): boolean {
    throw new Error("not yet")
  }

  /** Whether a fact holds now; names in lower case. */
  holds(_predicate: string, ..._ids: string[]): boolean {
    throw new Error("not yet")
  }

  /** The facts of a predicate now, as tuples of ids, sorted. */
  facts(_predicate: string): readonly (readonly string[])[] {
    throw new Error("not yet")
  }
}
