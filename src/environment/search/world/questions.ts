import { Random } from "../../../util/random.ts"
import type { SearchTask } from "../questions.ts"
import { kinds } from "./kinds.ts"
import type { Entity, World } from "./world.ts"

/** Number of facts that lead from an entity to an answer. */
export type Hops = 1 | 2 | "mixed"

/**
 * Questions about a world. Training questions are drawn endlessly; each test question occurs once, in a fixed order. One entity in six is
 * a subject only in the test. Training questions use no fact of a test question with one or two hops, so memorized training answers do not
 * help in the test.
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
    yield* new Random(0).derive("test questions").shuffled(all)
    return
  }
  // Both lengths for every `hops`, so that a model trained with one hop can be tested with two.
  const tested = new Set(
    heldOut.flatMap((entity) => pathsFrom(world, entity, "mixed").flatMap((path) => factsOf(world, entity, path))),
  )
  const draw = random.derive("search questions")
  for (;;) {
    // One hop as often as two, although there are more paths of two.
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
 * Questions about several worlds with the same names. One world in six is used only in the test. Its facts differ from those of training,
 * so answers can be found only by search.
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
    yield* new Random(0).derive("test questions").shuffled(all)
    return
  }
  const draw = random.derive("search questions")
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

/** Facts along a path, as `entity/relation`. */
function factsOf(world: World, entity: Entity, path: readonly string[]): string[] {
  let at = entity
  return path.map((relation, i) => {
    if (i > 0) at = world.get(at.facts[path[i - 1]!]!)!
    return `${at.name}/${relation}`
  })
}

/** Paths from an entity that questions can be about; those that lead back to the entity are excluded. */
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
  let described = entity.name
  for (const relation of path.slice(0, -1)) {
    described = kinds[at.kind].relations[relation]!.phrase!.replace("{}", described)
    at = world.get(at.facts[relation]!)!
  }
  const last = path.at(-1)!
  const question = kinds[at.kind].relations[last]!.question
  return {
    id: `${entity.name}: ${path.join(", ")}`,
    // "the {}" is for names; phrases bring their own article.
    question: (path.length > 1 ? question.replace("the {}", "{}") : question).replace("{}", described),
    answers: [at.facts[last]!],
    source: path.length === 1 ? "world-1-hop" : "world-2-hop",
    subject: entity.name,
    path,
  }
}
