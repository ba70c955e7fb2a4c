import { Random } from "../../../random.ts"
import type { SearchTask } from "../questions.ts"
import { kinds } from "./kinds.ts"
import type { Entity, World } from "./world.ts"

/** Facts that lead from an entity to an answer. */
export type Hops = 1 | 2 | "mixed"

/**
 * The questions about a world. Training draws without end; the test has each of its questions once, in one fixed order. One
 * entity in six is asked about in the test alone, so no question, and no one asked about, occurs on both sides.
 */
export function* worldQuestions(
  world: World,
  split: "train" | "test",
  hops: Hops,
  random: Random,
): Generator<SearchTask, void, undefined> {
  const subjects = subjectsOf(world, split)
  if (split === "test") {
    const all = subjects.flatMap((entity) =>
      pathsFrom(world, entity, hops).map((path) => questionOf(world, entity, path)),
    )
    yield* new Random(0).fork("test questions").shuffled(all)
    return
  }
  const draw = random.fork("search questions")
  for (;;) {
    const entity = subjects[draw.below(subjects.length)]!
    // As often one hop as two, although there are more paths of two.
    const paths = pathsFrom(world, entity, hops === "mixed" ? (draw.below(2) === 0 ? 1 : 2) : hops)
    if (paths.length > 0) yield questionOf(world, entity, paths[draw.below(paths.length)]!)
  }
}

function subjectsOf(world: World, split: "train" | "test"): Entity[] {
  const isHeldOut = (_: Entity, i: number) => (i % 6 === 5) === (split === "test")
  return Array.from(world.values()).filter(isHeldOut)
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
