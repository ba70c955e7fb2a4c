import { describe, expect, it } from "vitest"
import { Game } from "../../../src/environment/alfworld/game.ts"
import { Random } from "../../../src/util/random.ts"
import { tiny, tinyFile } from "./tiny.ts"

/** An action that notes its arguments, so that it never is without effect. */
const note = (parameters: string, precondition: string) =>
  `:parameters (${parameters}) :precondition ${precondition} :effect (noted ${parameters.match(/\?\w+/g)?.join(" ")})`

/** For which of the things a, b, c a condition on ?x holds at the start. */
function where(condition: string, init: string, more: { types?: string; objects?: string; constants?: string } = {}) {
  const world = tiny({
    objects: "a b c - thing",
    init,
    actions: { try: note("?x - thing", condition) },
    wordings: { try: ["{x.id}", "Done."] },
    ...more,
  })
  return world.admissible().join("")
}

describe("conditions", () => {
  it.each([
    ["()", "", "abc"],
    ["(and)", "", "abc"],
    ["(or)", "", ""],
    ["(p ?x)", "(p a) (p a) (p c)", "ac"],
    ["(not (p ?x))", "(p a) (p c)", "b"],
    ["(and (p ?x) (q ?x))", "(p a) (p b) (q b) (q c)", "b"],
    ["(or (p ?x) (q ?x))", "(p a) (p b) (q b) (q c)", "abc"],
    ["(not (or (p ?x) (q ?x)))", "(p a) (q b)", "c"],
    ["(not (and (p ?x) (q ?x)))", "(p a) (q a) (q b)", "bc"],
    ["(imply (p ?x) (q ?x))", "(p a) (p b) (q b)", "bc"],
    ["(not (imply (p ?x) (q ?x)))", "(p a) (p b) (q b)", "a"],
    ["(= ?x b)", "", "b"],
    ["(not (= ?x b))", "", "ac"],
    ["(exists (?y - thing) (r ?x ?y))", "(r a b) (r a c) (r c c)", "ac"],
    ["(exists (?y - thing) (and (r ?x ?y) (not (= ?x ?y))))", "(r a b) (r c c)", "a"],
    ["(not (exists (?y - thing) (r ?x ?y)))", "(r a b)", "bc"],
    ["(forall (?y - thing) (r ?x ?y))", "(r a a) (r a b) (r a c) (r b a)", "a"],
    ["(forall (?y - thing) (imply (q ?y) (r ?x ?y)))", "(q b) (r a b) (r c a)", "a"],
    ["(not (forall (?y - thing) (r ?x ?y)))", "(r a a) (r a b) (r a c)", "bc"],
    ["(forall (?y - thing) (exists (?z - thing) (s ?x ?y ?z)))", "(s a a b) (s a b b) (s a c a) (s b a a)", "a"],
    ["(r ?x ?x)", "(r a b) (r b b)", "b"],
    ["(exists (?x - thing) (p ?x))", "(p b)", "abc"],
    ["(P ?X)", "(p A)", "a"],
    ["(p ?x) ; (q ?x)\n", "(p a) ; (p b)\n (= (total-cost) 0) (not (p c))", "a"],
  ])("%s with %s holds for %j", (condition, init, things) => {
    expect(where(condition, init)).toBe(things)
  })

  it("treat a comma as part of the type, of which there are no objects", () => {
    const init = "(r a b)"
    expect(where("(exists (?y - thing, ?z - thing) (r ?x ?y))", init)).toBe("")
    expect(where("(forall (?y - thing, ?z - thing) (r ?x ?y))", init)).toBe("abc")
    expect(where("(exists (?y - thing ?z - thing) (r ?x ?y))", init)).toBe("a")
  })

  it("support subtypes, with `object` as the root", () => {
    const more = { types: "fruit - food food tool", objects: "a - fruit b - food c - tool e - other d" }
    const of = (type: string) =>
      tiny({ ...more, actions: { try: note(`?x - ${type}`, "()") }, wordings: { try: ["{x.id}", ""] } }).admissible()
    expect(of("fruit")).toEqual(["a"])
    expect(of("food")).toEqual(["a", "b"])
    expect(of("object")).toEqual(["a", "b", "c", "d", "e"])
    expect(of("unheard")).toEqual([])
  })

  it("terminate for cyclic types", () => {
    expect(where("()", "", { types: "thing - other other - thing" })).toBe("abc")
  })

  it("support constants of the domain", () => {
    expect(where("(r ?x anvil)", "(r b anvil)", { constants: "anvil - tool" })).toBe("b")
  })

  it("agree with direct evaluation of random formulas", () => {
    const random = new Random(7)
    for (let round = 0; round < 400; round++) {
      const facts = new Set<string>()
      for (const x of "abc") {
        if (random.below(2)) facts.add(`(p ${x})`)
        for (const y of "abc") if (random.below(3) === 0) facts.add(`(r ${x} ${y})`)
      }
      const formula = drawFormula(random, ["?x"], 3)
      const expected = [..."abc"].filter((x) => evaluate(formula, { "?x": x }, facts)).join("")
      expect(where(write(formula), [...facts].join(" ")), `${write(formula)} with ${[...facts].join(" ")}`).toBe(
        expected,
      )
    }
  })
})

type Formula = readonly [head: string, ...rest: (string | Formula)[]]

function drawFormula(random: Random, variables: string[], depth: number): Formula {
  const variable = () => variables[random.below(variables.length)]!
  const inner = () => drawFormula(random, variables, depth - 1)
  switch (random.below(depth > 0 ? 9 : 3)) {
    case 0:
      return ["p", variable()]
    case 1:
      return ["r", variable(), variable()]
    case 2:
      return ["=", variable(), random.below(2) ? variable() : "b"]
    case 3:
      return ["and", inner(), inner()]
    case 4:
      return ["or", inner(), inner()]
    case 5:
      return ["not", inner()]
    case 6:
      return ["imply", inner(), inner()]
    default: {
      const bound = `?${"xyzw"[random.below(4)]}`
      const scope = [...new Set([...variables, bound])]
      return [random.below(2) ? "exists" : "forall", bound, drawFormula(random, scope, depth - 1)]
    }
  }
}

function write(formula: Formula): string {
  const [head, ...rest] = formula
  if (head === "exists" || head === "forall") return `(${head} (${rest[0]} - thing) ${write(rest[1] as Formula)})`
  return `(${head} ${rest.map((part) => (typeof part === "string" ? part : write(part))).join(" ")})`
}

function evaluate(formula: Formula, values: Record<string, string>, facts: ReadonlySet<string>): boolean {
  const [head, one, other] = formula
  const holds = (part: string | Formula | undefined) => evaluate(part as Formula, values, facts)
  const value = (word: string | Formula | undefined) => values[word as string] ?? (word as string)
  const each = (x: string) => evaluate(other as Formula, { ...values, [one as string]: x }, facts)
  switch (head) {
    case "and":
      return holds(one) && holds(other)
    case "or":
      return holds(one) || holds(other)
    case "not":
      return !holds(one)
    case "imply":
      return !holds(one) || holds(other)
    case "exists":
      return [..."abc"].some(each)
    case "forall":
      return [..."abc"].every(each)
    case "=":
      return value(one) === value(other)
    default:
      return facts.has(`(${[head, ...formula.slice(1).map(value)].join(" ")})`)
  }
}

describe("effects", () => {
  const after = (effect: string, init: string) => {
    const world = tiny({
      objects: "a b - thing",
      init,
      actions: { do: `:parameters (?x - thing) :precondition (start ?x) :effect (and ${effect} (noted ?x))` },
    })
    world.step("do")
    return ["p", "q", "not_p"].flatMap((name) => world.facts(name).map((ids) => [name, ...ids].join(" ")))
  }

  it.each([
    ["(p ?x)", "(start a)", ["p a"]],
    ["(not (p ?x))", "(start a) (p a) (p b)", ["p b", "not_p a"]],
    ["(not (p ?x)) (increase (total-cost) 5)", "(start a)", ["not_p a"]],
    ["(not (p ?x)) (p ?x)", "(start a)", ["p a"]],
    ["(p ?x) (not (p ?x))", "(start a) (p a)", ["p a"]],
    ["(when (p ?x) (q ?x))", "(start a)", []],
    ["(when (p ?x) (q ?x))", "(start a) (p a)", ["p a", "q a"]],
    ["(when (p ?x) (not (p ?x))) (when (not (p ?x)) (p ?x))", "(start a)", ["p a"]],
    ["(when (p ?x) (not (p ?x))) (when (not (p ?x)) (p ?x))", "(start a) (p a)", ["not_p a"]],
    ["(p ?x) (when (p ?x) (q ?x))", "(start a)", ["p a"]],
    ["(when (p ?x) (and (q ?x) (when (q b) (q b))))", "(start a) (p a) (q b)", ["p a", "q a", "q b"]],
    ["(forall (?y - thing) (p ?y))", "(start a)", ["p a", "p b"]],
    ["(forall (?y - thing) (when (p ?y) (and (q ?y) (not (p ?y)))))", "(start a) (p b)", ["q b", "not_p b"]],
  ])("%s after %s leave %j", (effect, init, facts) => {
    expect(after(effect, init)).toEqual(facts)
  })

  it("restore a removed fact when it is added again", () => {
    const world = tiny({
      objects: "a - thing",
      init: "(p a)",
      actions: {
        drop: ":parameters (?x - thing) :precondition (p ?x) :effect (not (p ?x))",
        lift: ":parameters (?x - thing) :precondition (not (p ?x)) :effect (p ?x)",
      },
    })
    const seen = () => [world.admissible().join(), world.holds("p", "a"), world.holds("not_p", "a")]
    expect(seen()).toEqual(["drop", true, false])
    world.step("drop")
    expect(seen()).toEqual(["lift", false, true])
    world.step("lift")
    expect(seen()).toEqual(["drop", true, false])
  })
})

describe("actions without effect", () => {
  const commands = (action: string, init: string) =>
    tiny({
      objects: "a b - thing",
      init,
      actions: { do: action },
      wordings: { do: ["{x.id} {y.id}", "Done."] },
    }).admissible()

  it("are omitted if the condition implies the effect: going to the current place", () => {
    const go =
      ":parameters (?x ?y - thing) :precondition (at ?x) :effect (and (not (at ?x)) (at ?y) (increase (cost) 1))"
    expect(commands(go, "(at a)")).toEqual(["a b"])
  })

  it("are kept if only the state, not the condition, implies it", () => {
    expect(commands(":parameters (?x ?y - thing) :precondition (at ?x) :effect (seen ?y)", "(at a) (seen b)")).toEqual([
      "a a",
      "a b",
    ])
  })

  it("are distinguished by the branch of an `or` that applies", () => {
    const mark = ":parameters (?x ?y - thing) :precondition (and (= ?x ?y) (or (p ?x) (q ?x))) :effect (p ?x)"
    expect(commands(mark, "(p a) (q b)")).toEqual(["b b"])
    expect(commands(mark, "(p a) (q a)")).toEqual(["a a"])
  })

  it("are omitted if they remove facts that cannot hold", () => {
    const clear = ":parameters (?x ?y - thing) :precondition (and (= ?x ?y) (not (p ?x))) :effect (not (p ?x))"
    expect(commands(clear, "(p a)")).toEqual([])
  })

  it("are omitted if all their effects are conditional and implied", () => {
    const mark = (effect: string) =>
      commands(`:parameters (?x ?y - thing) :precondition (and (= ?x ?y) (p ?x)) :effect ${effect}`, "(p a)")
    expect(mark("(when (q ?x) (p ?x))")).toEqual([])
    expect(mark("(when (q ?x) (q ?x))")).toEqual(["a a"])
    expect(mark("(and (p ?x) (when (q ?x) (not (p ?x))))")).toEqual([])
    expect(mark("(and (not (q ?x)) (when (p ?x) (q ?x)))")).toEqual(["a a"])
    expect(mark("(forall (?z - thing) (p ?z))")).toEqual(["a a"])
  })

  it("are omitted if they only have a cost", () => {
    expect(commands(":parameters (?x ?y - thing) :precondition () :effect (increase (cost) 1)", "")).toEqual([])
  })
})

describe("commands", () => {
  const cellar = {
    objects: "Box_bar_1 Box_bar_2 Hand - thing",
    init: "(in Box_bar_1) (in Box_bar_2)",
    actions: { Lift: ":parameters (?b - thing) :precondition (in ?b) :effect (and (not (in ?b)) (held ?b))" },
    wordings: { Lift: ["Lift {b}", "You hold {b.definite} {b}."] },
    goal: "(exists (?b - thing) (and (held ?b) (= ?b box_bar_2)))",
  } as const

  it("are accepted as listed, ignoring surrounding white space", () => {
    const world = tiny(cellar)
    for (const wrong of ["", "lift box 1", "Lift box", "Lift box 1 now", "Lift  box 1", "constructor"])
      expect(world.step(wrong)).toBe("Nothing happens.")
    expect(world.facts("held")).toEqual([])
    expect(world.step(" \tLift box 2\n")).toBe("You hold the box 2.")
    expect(world.facts("held")).toEqual([["box_bar_1"]])
  })

  it("are stripped of the white space that Python strips", () => {
    const world = tiny(cellar)
    for (const wrong of ["\ufeffLift box 1", "Lift box 1\ufeff", "Lift\x1cbox 1"])
      expect(world.step(wrong)).toBe("Nothing happens.")
    expect(world.step("\x1c\x1d\x1e\x1f\x85Lift box 1\u2028")).toBe("You hold the box 1.")
  })

  it("win when the goal holds", () => {
    const world = tiny(cellar)
    expect(world.won).toBe(false)
    world.step("Lift box 2")
    expect(world.won).toBe(false)
    world.step("Lift box 1")
    expect(world.won).toBe(true)
    expect(world.admissible()).toEqual([])
  })

  it("of one world do not affect its copy or the game", () => {
    const game = Game.parse(tinyFile(cellar))
    const [one, other] = [game.start(), game.start()]
    one.step("Lift box 2")
    expect(one.admissible()).toEqual(["Lift box 1"])
    expect(other.admissible()).toEqual(["Lift box 1", "Lift box 2"])
    expect(game.facts("in")).toEqual([["box_bar_1"], ["box_bar_2"]])
    expect(game.facts("held")).toEqual([])
    expect(game.facts("unheard")).toEqual([])
    expect(one.holds("held", "box_bar_1")).toBe(true)
    expect(other.holds("held", "box_bar_1")).toBe(false)
    expect([one.holds("held"), one.holds("held", "unheard"), one.holds("unheard", "hand")]).toEqual([
      false,
      false,
      false,
    ])
  })

  it("are sorted by characters and unique; of equal ones the first is kept", () => {
    const world = tiny({
      objects: `${Array.from({ length: 10 }, (_, i) => `Box_bar_${i}`).join(" ")} - thing`,
      init: Array.from({ length: 10 }, (_, i) => `(in Box_bar_${i})`).join(" "),
      actions: { see: note("?b - thing", "(in ?b)"), sing: note("?b - thing", "(in ?b)") },
      wordings: { see: ["see {b}", "Seen."], sing: ["sing", "You sing of {b}."] },
    })
    expect(world.admissible()).toEqual([
      "see box 1",
      "see box 10",
      ...Array.from({ length: 8 }, (_, i) => `see box ${i + 2}`),
      "sing",
    ])
    expect(world.step("sing")).toBe("You sing of box 10.")
  })
})

describe("names", () => {
  it("are numbered in descending order of ids; basins are a separate kind; objects without a position keep a space", () => {
    const ids =
      "Drawer_bar_b Drawer_bar_a Drawer_bar_c Sink_bar_1_bar_SinkBasin Sink_bar_2 loc_bar_1 MugType Unused_bar_1"
    const init = ids.split(" ").slice(0, -1)
    const game = Game.parse(tinyFile({ objects: `${ids} - thing`, init: init.map((id) => `(is ${id})`).join(" ") }))
    const names = Object.fromEntries(ids.split(" ").map((id) => [id, game.name(id.toLowerCase())]))
    expect(names).toEqual({
      Drawer_bar_a: "drawer 3",
      Drawer_bar_b: "drawer 2",
      Drawer_bar_c: "drawer 1",
      Sink_bar_1_bar_SinkBasin: "sinkbasin 1",
      Sink_bar_2: "sink 1",
      loc_bar_1: "loc 1",
      MugType: "mugtype ",
      Unused_bar_1: "unused_bar_1",
    })
  })

  it("restore characters that ids cannot contain", () => {
    const ids = "a_minus_b_plus_c_dot_5_comma_d Mug_dot_2_bar_1 Mug_minus_bar_1"
    const init = ids.split(" ").map((id) => `(is ${id})`)
    const game = Game.parse(tinyFile({ objects: `${ids} - thing`, init: init.join(" ") }))
    expect(ids.split(" ").map((id) => game.name(id.toLowerCase()))).toEqual(["a-b+c.5,d ", "mug.2 1", "mug_minus 1"])
  })
})
