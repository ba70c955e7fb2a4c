import { beforeAll, describe, expect, it } from "vitest"
import { normalizeAnswer } from "../../../src/environment/search/answer.ts"
import { memoryCorpus } from "../../../src/environment/search/corpus.ts"
import type { SearchTask } from "../../../src/environment/search/questions.ts"
import { kindNames, kinds } from "../../../src/environment/search/world/kinds.ts"
import { type Hops, worldQuestions, worldsQuestions } from "../../../src/environment/search/world/questions.ts"
import { makeWorld, passageOf, readFact, type World } from "../../../src/environment/search/world/world.ts"
import { Random } from "../../../src/util/random.ts"

const { signal } = new AbortController()

function take(world: World, split: "train" | "test", hops: Hops, count: number, seed = 1): SearchTask[] {
  const tasks: SearchTask[] = []
  for (const task of worldQuestions(world, split, hops, new Random(seed))) {
    if (tasks.push(task) === count) break
  }
  return tasks
}

describe("a generated world", () => {
  it("is determined by the seed", async () => {
    expect(await makeWorld(300, 1)).toEqual(await makeWorld(300, 1))
    const other = await makeWorld(300, 2)
    expect(Array.from((await makeWorld(300, 1)).keys()).filter((name) => other.has(name)).length).toBeLessThan(10)
  })

  it.each([60, 61, 64, 300, 3000])("of %i entities has as many different names, of two words each", async (size) => {
    const world = await makeWorld(size, 1)
    expect(world.size).toBe(size)
    for (const [name, entity] of world) {
      expect(entity.name).toBe(name)
      expect(name).toMatch(/^[A-Z][a-z]+ [A-Z][a-z]+$/)
      expect(normalizeAnswer(name)).toBe(name.toLowerCase())
    }
    const counts = kindNames.map((kind) => Array.from(world.values()).filter((entity) => entity.kind === kind).length)
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
  })

  it("is closed: facts refer to entities of the right kind or to words", async () => {
    const world = await makeWorld(300, 1)
    for (const { kind, facts } of world.values()) {
      expect(Object.keys(facts)).toEqual(Object.keys(kinds[kind].relations))
      for (const [relation, value] of Object.entries(facts)) {
        const { to } = kinds[kind].relations[relation]!
        if (typeof to === "string") expect(world.get(value)?.kind).toBe(to)
        else expect(to).toContain(value)
      }
    }
  })

  it("is described in passages of 20 to 30 words that state every fact", async () => {
    const world = await makeWorld(300, 1)
    for (const entity of world.values()) {
      const [title, text, ...more] = passageOf(entity).split("\n")
      expect([title, more]).toEqual([`"${entity.name}"`, []])
      const words = passageOf(entity).split(/\s+/).length
      expect(words).toBeGreaterThanOrEqual(20)
      expect(words).toBeLessThanOrEqual(30)
      for (const [relation, value] of Object.entries(entity.facts))
        expect(readFact(text!, entity.name, relation)).toBe(value)
      expect(text).not.toMatch(/[{}]|undefined/)
    }
    expect(readFact("Velan Bay is nice.", "Velan Bay", "mayor")).toBeUndefined()
    expect(readFact("Velan Bay is nice.", "Velan Bay", "nothing")).toBeUndefined()
  })

  it.each([60, 300, 3000])("of %i entities finds each entity's own passage first by its name", async (size) => {
    const world = await makeWorld(size, 1)
    const corpus = await memoryCorpus(
      Array.from(world.values(), (entity, i) => ({ id: String(i), contents: passageOf(entity) })),
    )
    for (const entity of world.values())
      expect((await corpus.retrieve(entity.name, 1, signal))[0]!.contents).toBe(passageOf(entity))
  })
})

describe("questions about a generated world", () => {
  let world: World
  beforeAll(async () => {
    world = await makeWorld(300, 1)
  })

  it("have one answer each, which follows from the facts", () => {
    const answers = new Map<string, string>()
    for (const task of [...take(world, "train", "mixed", 5000), ...take(world, "test", "mixed", 5000)]) {
      let at = task.subject!
      for (const relation of task.path!) at = world.get(at)!.facts[relation]!
      expect(task.answers).toEqual([at])
      expect(answers.get(task.question) ?? at).toBe(at)
      answers.set(task.question, at)
      expect(task.question).toMatch(/^[A-Z][^{}]*\?$/)
      expect(task.question).toContain(task.subject!)
      expect(at).not.toBe(task.subject)
      // An answer that stands in the question would need no search.
      expect(task.question).not.toContain(at)
    }
    expect(answers.size).toBeGreaterThan(1700)
  })

  it("are correct sentences with one hop and two", () => {
    const asked = (kind: string, ...path: string[]) =>
      take(world, "test", "mixed", 5000)
        .filter((task) => world.get(task.subject!)!.kind === kind && task.path!.join() === path.join())
        .map((task) => task.question.replace(task.subject!, "X"))[0]
    expect(asked("river", "colour")).toBe("What colour is the water of the X?")
    expect(asked("person", "birthplace", "mayor")).toBe("Who is the mayor of the town where X was born?")
    expect(asked("town", "river", "colour")).toBe("What colour is the water of the river on which X lies?")
    expect(asked("river", "source", "river")).toBe("On which river does the town near which the X rises lie?")
    expect(asked("dish", "inventor", "job")).toBe("What is the job of the inventor of X?")
  })

  it("have disjoint questions and subjects in the two splits", () => {
    const train = take(world, "train", "mixed", 20_000)
    const test = take(world, "test", "mixed", 20_000)
    const subjects = new Set(train.map((task) => task.subject))
    expect(test.filter((task) => subjects.has(task.subject))).toEqual([])
    expect(subjects.size).toBeGreaterThan(150)
    expect(new Set(test.map((task) => task.subject)).size).toBe(50)
  })

  it.each([60, 300])("of %i entities: training questions use no fact of a test question", async (size) => {
    const small = await makeWorld(size, 3)
    const facts = ({ subject, path }: SearchTask) => {
      const names = [subject!, ...(path!.length > 1 ? [small.get(subject!)!.facts[path![0]!]!] : [])]
      return path!.map((relation, i) => `${names[i]}: ${relation}`)
    }
    // Trained with one number of hops, tested with any other.
    const tested = new Set(take(small, "test", "mixed", 10_000).flatMap(facts))
    for (const hops of [1, 2, "mixed"] as const) {
      const train = take(small, "train", hops, 3000)
      expect(train.filter((task) => facts(task).some((fact) => tested.has(fact)))).toEqual([])
      expect(new Set(train.map((task) => task.id)).size).toBeGreaterThan((hops === "mixed" ? 3 : 1) * size)
    }
  })

  it("have the configured number of hops, mixed ones half and half", () => {
    for (const hops of [1, 2] as const)
      for (const split of ["train", "test"] as const)
        expect(take(world, split, hops, 200).every((task) => task.path!.length === hops)).toBe(true)
    const mixed = take(world, "train", "mixed", 2000).filter((task) => task.path!.length === 1).length
    expect(mixed).toBeGreaterThan(880)
    expect(mixed).toBeLessThan(1120)
  })

  it("occur once in the test, in a fixed order; in training in random order", () => {
    const test = take(world, "test", "mixed", 10_000)
    expect(test.length).toBeGreaterThan(400)
    expect(new Set(test.map((task) => task.question)).size).toBe(test.length)
    expect(take(world, "test", "mixed", 10_000, 2)).toEqual(test)
    expect(take(world, "train", "mixed", 50, 1)).toEqual(take(world, "train", "mixed", 50, 1))
    expect(take(world, "train", "mixed", 50, 1)).not.toEqual(take(world, "train", "mixed", 50, 2))
  })
})

describe("several worlds", () => {
  let worlds: World[]
  beforeAll(async () => {
    worlds = []
    for (let number = 0; number < 12; number++) worlds.push(await makeWorld(60, 1, { number }))
  })
  const draw = (split: "train" | "test", hops: Hops, count: number, seed = 1) => {
    const tasks: SearchTask[] = []
    for (const task of worldsQuestions(worlds, split, hops, new Random(seed))) if (tasks.push(task) === count) break
    return tasks
  }

  it("have the same names and different facts", () => {
    const names = Array.from(worlds[0]!.keys())
    for (const world of worlds) expect(Array.from(world.keys())).toEqual(names)
    const passages = (name: string) => new Set(worlds.map((world) => passageOf(world.get(name)!)))
    for (const name of names) expect(passages(name).size).toBeGreaterThan(6)
  })

  it("are used in training or in the test, never in both", () => {
    const worldsOf = (tasks: readonly SearchTask[]) =>
      [...new Set(tasks.map(({ world }) => world!))].sort((a, b) => a - b)
    expect(worldsOf(draw("test", "mixed", 100_000))).toEqual([5, 11])
    expect(worldsOf(draw("train", "mixed", 2000))).toEqual([0, 1, 2, 3, 4, 6, 7, 8, 9, 10])
  })

  it("give each question the answer of its world, and a separate id", () => {
    for (const { world, subject, path, answers } of [...draw("train", "mixed", 500), ...draw("test", "mixed", 500)]) {
      let at = worlds[world!]!.get(subject!)!
      for (const relation of path!.slice(0, -1)) at = worlds[world!]!.get(at.facts[relation]!)!
      expect(answers).toEqual([at.facts[path!.at(-1)!]])
    }
    const test = draw("test", "mixed", 100_000)
    expect(new Set(test.map(({ id }) => id)).size).toBe(test.length)
    expect(draw("test", "mixed", 20, 1)).toEqual(draw("test", "mixed", 20, 2))
    expect(draw("train", "mixed", 20, 1)).not.toEqual(draw("train", "mixed", 20, 2))
    for (const hops of [1, 2] as const)
      expect(draw("train", hops, 200).every(({ path }) => path!.length === hops)).toBe(true)
  })
})
