import { createHash } from "node:crypto"
import { strip } from "../python-text.ts"
import { Action } from "./action.ts"
import { readDomain } from "./domain.ts"
import { digits, type Facts, factsOf, holds } from "./facts.ts"
import { fault, guard } from "./fault.ts"
import { branchesOf, planQuery } from "./formula.ts"
import type { GameFile } from "./game-file.ts"
import { readGrammar } from "./grammar.ts"
import { displayNames } from "./names.ts"
import { Narrator } from "./narrator.ts"
import { readProblem } from "./problem.ts"
import { always, type Query, Slots } from "./query.ts"
import type { Expression } from "./s-expression.ts"
import { Vocabulary } from "./vocabulary.ts"

/** Action with its wording. */
interface Deed {
  readonly action: Action
  readonly template: string
  readonly feedback: string
  /** Placeholders of the parameters in the texts. */
  readonly placeholders: readonly number[]
}

/** Applicable action with its arguments. */
interface Choice {
  readonly deed: Deed
  readonly args: readonly number[]
}

/** Household with its rules and goal, parsed once and shared by all episodes. */
export class Game {
  /** Goal formula. */
  readonly goal: Expression
  readonly #source: string
  readonly #vocabulary: Vocabulary
  readonly #names: ReadonlyMap<string, string>
  readonly #narrator: Narrator
  readonly #deeds: readonly Deed[]
  readonly #goals: readonly Query[]
  /** Predicates of `stateOf`. */
  #decisive: readonly number[] | undefined
  readonly #slots: Slots
  readonly #start: Facts
  #opening: { text: string; choices: ReadonlyMap<string, Choice> } | undefined

  private constructor(file: GameFile, source: string) {
    this.#source = source
    const domain = readDomain(file.domain)
    const grammar = readGrammar(file.grammar)
    const problem = readProblem(file.problem)
    const vocabulary = new Vocabulary(domain, problem)
    this.#vocabulary = vocabulary

    const facts: Set<number>[] = []
    for (const [predicate, ...ids] of problem.init) {
      const number = vocabulary.predicate(predicate ?? fault("a fact in :init is empty"), ids.length)
      let fact = 0
      for (const id of ids) fact = fact * vocabulary.ids.length + vocabulary.object(id)
      facts[number] ??= new Set()
      facts[number].add(fact)
    }
    this.#start = facts.map((set) => [...set].sort((a, b) => a - b))
    const counts = new Map(this.#start.map((list, predicate) => [predicate, list.length]))

    const named = new Set(problem.init.flatMap(([, ...ids]) => ids))
    this.#names = displayNames(vocabulary.ids.filter((id) => named.has(id)))
    this.#narrator = new Narrator(grammar, vocabulary, this.#names)
    this.#deeds = domain.actions.map((schema) => ({
      action: new Action(schema, vocabulary, counts),
      ...(grammar.wordings.get(schema.name) ?? fault(`the grammar does not know the action ${schema.name}`)),
      placeholders: schema.parameters.map(({ name, type }) => this.#narrator.placeholder(name.slice(1), type)),
    }))
    this.#slots = new Slots(vocabulary.ids.length, false)
    const scope = { vocabulary, slots: this.#slots, variables: new Map() }
    this.goal = problem.goal
    const branches = branchesOf(problem.goal, scope)
    this.#goals = branches.map((branch) => planQuery(branch, this.#slots, counts))

    // Facts of the goal that no action adds must hold at the start, as the reference checks when it loads a game.
    const made = new Set(this.#deeds.flatMap(({ action }) => action.makes))
    const lasting = branches.map(({ conditions, variables }) => {
      const given = conditions.filter(
        (one) => one.kind === "equal" || (one.kind === "fact" && !made.has(one.predicate)),
      )
      return planQuery({ conditions: given, variables }, this.#slots, counts)
    })
    if (!this.#reached(lasting, this.#start))
      fault("its goal needs a fact that is false at the start and that no action adds")
  }

  /** Parses a game file. Throws `BAD_DATA` with the source for a corrupt text. */
  static parse(file: GameFile, source = "the game"): Game {
    return guard(source, () => new Game(file, source))
  }

  /** Starts an episode. Throws `BAD_DATA` for invalid rules. */
  start(): World {
    const { text, choices } = guard(this.#source, () => {
      this.#opening ??= {
        text: this.#narrator.tell("#intro#", this.#start),
        choices: this.choices(this.#start),
      }
      return this.#opening
    })
    return new World(this, this.#source, text, this.#start, choices)
  }

  /** Display name of an object, e.g. "drawer 1"; the id for an object without facts at the start. */
  name(id: string): string {
    return this.#names.get(id) ?? id
  }

  /** Facts of a predicate at the start, as sorted tuples of lower-case ids. */
  facts(predicate: string): readonly (readonly string[])[] {
    return this.tuples(this.#start, predicate)
  }

  /**
   * Digest of the facts that the goal or an action depends on. Others only record that something was looked at.
   *
   * @internal
   */
  stateOf(facts: Facts): string {
    this.#decisive ??= [
      ...new Set([...this.#goals, ...this.#deeds.map(({ action }) => action)].flatMap(({ reads }) => reads)),
    ].sort((a, b) => a - b)
    const state = this.#decisive.map((predicate) => factsOf(facts, predicate))
    return createHash("sha256").update(JSON.stringify(state)).digest("base64")
  }

  /** @internal */
  choices(facts: Facts): ReadonlyMap<string, Choice> {
    const choices = new Map<string, Choice>()
    for (const deed of this.#deeds) {
      deed.action.each(facts, (args) => {
        const command = this.#narrator.tell(deed.template, facts, deed.placeholders, args)
        if (!choices.has(command)) choices.set(command, { deed, args })
      })
    }
    return choices
  }

  /** @internal */
  feedback({ deed, args }: Choice, facts: Facts): string {
    return this.#narrator.tell(deed.feedback, facts, deed.placeholders, args)
  }

  /** @internal */
  isWon(facts: Facts): boolean {
    return this.#reached(this.#goals, facts)
  }

  #reached(goals: readonly Query[], facts: Facts): boolean {
    return goals.some((query) => query.match(facts, this.#slots.free(), always))
  }

  /** @internal */
  holds(facts: Facts, predicate: string, ids: readonly string[]): boolean {
    const known = this.#vocabulary.findPredicate(predicate)
    if (known?.arity !== ids.length) return false
    let fact = 0
    for (const id of ids) fact = fact * this.#vocabulary.ids.length + (this.#vocabulary.find(id) ?? Number.NaN)
    return holds(facts, known.number, fact)
  }

  /** @internal */
  tuples(facts: Facts, predicate: string): readonly (readonly string[])[] {
    const known = this.#vocabulary.findPredicate(predicate)
    if (!known) return []
    const { ids } = this.#vocabulary
    return factsOf(facts, known.number).map((fact) =>
      digits(fact, known.arity, ids.length).map((object) => ids[object]!),
    )
  }
}

/** Running game. */
export class World {
  /** Text of the first observation. */
  readonly text: string
  readonly #game: Game
  readonly #source: string
  #facts: Facts
  #choices: ReadonlyMap<string, Choice>

  /** Called by `Game.start`. */
  constructor(game: Game, source: string, text: string, facts: Facts, choices: ReadonlyMap<string, Choice>) {
    this.#game = game
    this.#source = source
    this.text = text
    this.#facts = facts
    this.#choices = choices
  }

  /** Admissible commands, sorted. */
  admissible(): readonly string[] {
    return [...this.#choices.keys()].sort()
  }

  /** Executes a command and returns the observation; "Nothing happens." for a command that is not admissible. */
  step(command: string): string {
    const choice = this.#choices.get(strip(command))
    if (!choice) return "Nothing happens."
    return guard(this.#source, () => {
      this.#facts = choice.deed.action.apply(this.#facts, choice.args)
      this.#choices = this.#game.choices(this.#facts)
      return this.#game.feedback(choice, this.#facts)
    })
  }

  /** Digest of the state. Equal states of a game have equal digests, however they were reached. */
  get state(): string {
    return this.#game.stateOf(this.#facts)
  }

  /** Whether the goal is reached. */
  get won(): boolean {
    return guard(this.#source, () => this.#game.isWon(this.#facts))
  }

  /** Whether a fact holds; names in lower case. */
  holds(predicate: string, ...ids: string[]): boolean {
    return this.#game.holds(this.#facts, predicate, ids)
  }

  /** Current facts of a predicate, as sorted tuples of ids. */
  facts(predicate: string): readonly (readonly string[])[] {
    return this.#game.tuples(this.#facts, predicate)
  }
}
