import { Random } from "../../../util/random.ts"
import type { SearchTask } from "../questions.ts"
import { kinds } from "./kinds.ts"
import type { Entity, World } from "./world.ts"

/** Facts that lead from an entity to an answer. */
export type Hops = 1 | 2 | "mixed"

/**
 * The questions about a world. Training draws without end; the test has each of its questions once, in one fixed order. One
 * entity in six is asked about in the test alone, and training never touches a fact that a test question does, be it with
 * one hop or two: knowing the training questions by heart answers none of the test's, nor half of one.
 */
export function* worldQuestions(
  world: World,
  split: "train" | "test",
  hops: Hops,
  random: Random,
): Generator<SearchTask, void, undefined> {
  const entities = Array.from(world.values())
  const heldOut = entities.filter((_, i) => i % 6 === 5)
  if (split === "test") {
    const all = heldOut.flatMap((entity) =>
      pathsFrom(world, entity, hops).map((path) => questionOf(world, entity, path)),
    )
    yield* new Random(0).fork("test questions").shuffled(all)
    return
  }
  // Of both lengths whatever `hops` is, so that a model trained with one can be tested with the other.
  const tested = new Set(
    heldOut.flatMap((entity) => pathsFrom(world, entity, "mixed").flatMap((path) => factsOf(world, entity, path))),
  )
  const draw = random.fork("search questions")
  for (;;) {
    // As often one hop as two, although there are more paths of two.
    const length = hops === "mixed" ? (draw.below(2) === 0 ? 1 : 2) : hops
    let [entity, open] = [entities[0]!, [] as string[][]]
    while (open.length === 0) {
      entity = entities[draw.below(entities.length)]!
      open = pathsFrom(world, entity, length).filter(
        (path) => !factsOf(world, entity, path).some((fact) => tested.has(fact)),
      )
    }
    yield questionOf(world, entity, open[draw.below(open.length)]!)
  }
}

/**
 * The questions about several worlds with the same names. One world in six is asked about in the test alone: what is true there
 * was never true in training, so that an answer can only be read, not known.
 */
export function* worldsQuestions(
  worlds: readonly World[],
  split: "train" | "test",
  hops: Hops,
  random: Random,
): Generator<SearchTask, void, undefined> {
  const isTest = (number: number) => number % 6 === 5
  const numbers = Array.from(worlds.keys()).filter((number) => isTest(number) === (split === "test"))
  const ask = (number: number, entity: Entity, path: readonly string[]): SearchTask => {
    const question = questionOf(worlds[number]!, entity, path)
    return { ...question, id: `${number}, ${question.id}`, world: number }
  }
  if (split === "test") {
    const all = numbers.flatMap((number) =>
      Array.from(worlds[number]!.values()).flatMap((entity) =>
        pathsFrom(worlds[number]!, entity, hops).map((path) => ask(number, entity, path)),
      ),
    )
    yield* new Random(0).fork("test questions").shuffled(all)
    return
  }
  const draw = random.fork("search questions")
  const one = <T>(list: readonly T[]) => list[draw.below(list.length)]!
  const entities = worlds.map((world) => Array.from(world.values()))
  for (;;) {
    const number = one(numbers)
    const length = hops === "mixed" ? (draw.below(2) === 0 ? 1 : 2) : hops
    let [entity, paths] = [one(entities[number]!), [] as string[][]]
    while (paths.length === 0) {
      entity = one(entities[number]!)
      paths = pathsFrom(worlds[number]!, entity, length)
    }
    yield ask(number, entity, one(paths))
  }
}

/** The facts that a path goes over, as `entity/relation`. */
function factsOf(world: World, entity: Entity, path: readonly string[]): string[] {
  let at = entity
  return path.map((relation, i) => {
    if (i > 0) at = world.get(at.facts[path[i - 1]!]!)!
    return `${at.name}/${relation}`
  })
}

/** The paths that can be asked about; those that lead back to where they start are not. */
function pathsFrom(world: World, entity: Entity, hops: Hops): string[][] {
  const { relations } = kinds[entity.kind]
  const one = Object.keys(relations).map((relation) => [relation])
  const two = Object.entries(relations).flatMap(([first, { phrase }]) => {
    const bridge = world.get(entity.facts[first]!)
    if (!phrase || !bridge) return []
    const onwards = Object.keys(kinds[bridge.kind].relations).filter((second) => bridge.facts[second] !== entity.name)
    return onwards.map((second) => [first, second])
  })
  return [...(hops === 2 ? [] : one), ...(hops === 1 ? [] : two)]
}

function questionOf(world: World, entity: Entity, path: readonly string[]): SearchTask {
  let at = entity
  let asked = entity.name
  for (const relation of path.slice(0, -1)) {
    asked = kinds[at.kind].relations[relation]!.phrase!.replace("{}", asked)
    at = world.get(at.facts[relation]!)!
  }
  const last = path.at(-1)!
  const question = kinds[at.kind].relations[last]!.question
  return {
    id: `${entity.name}: ${path.join(", ")}`,
    // "the {}" is for names; phrases bring their own article.
    question: (path.length > 1 ? question.replace("the {}", "{}") : question).replace("{}", asked),
    answers: [at.facts[last]!],
    source: path.length === 1 ? "world-1-hop" : "world-2-hop",
    subject: entity.name,
    path,
  }
}
