import { describe, expect, it } from "vitest"
import { Game } from "../../../src/environment/alfworld/game.ts"
import { readGameFile } from "../../../src/environment/alfworld/game-file.ts"
import { type GeneratedHousehold, generateHousehold } from "../../../src/environment/alfworld/generate/generate.ts"
import { type HouseholdOptions, householdFields, sizes } from "../../../src/environment/alfworld/generate/options.ts"
import { rooms } from "../../../src/environment/alfworld/generate/rooms.ts"
import { layOut, roomOf } from "../../../src/environment/alfworld/generate/scene.ts"
import { type TaskType, taskTypes } from "../../../src/environment/alfworld/generate/task-types.ts"
import { type HouseholdTask, householdTasks } from "../../../src/environment/alfworld/generate/tasks.ts"
import { fits, objectKinds } from "../../../src/environment/alfworld/generate/things.ts"
import { readOptions } from "../../../src/environment/options.ts"
import { Random } from "../../../src/util/random.ts"

function some(
  count: number,
  split: "train" | "valid_seen" | "valid_unseen",
  seed: number,
  options: HouseholdOptions = {},
) {
  const tasks: HouseholdTask[] = []
  for (const task of householdTasks(split, new Random(seed), readOptions("alfworld", options, householdFields))) {
    tasks.push(task)
    if (tasks.length === count) return tasks
  }
  return tasks
}

/** Plays the commands; gives the feedback of each. */
function play(game: Game, commands: readonly string[]): { won: boolean; texts: string[] } {
  const world = game.start()
  return { texts: commands.map((command) => world.step(command)), won: world.won }
}

describe.each(["small", "medium", "large"] as const)("%s households", (size) => {
  const tasks = some(334, "train", 1, { size })
  const households = tasks.map((task) => generateHousehold(task, { size }))

  it("are won by their walkthrough, with its last command", () => {
    for (const { walkthrough, ...file } of households) {
      const game = Game.parse(file)
      const { texts, won } = play(game, walkthrough)
      expect(texts).not.toContain("Nothing happens.")
      expect(won).toBe(true)
      expect(play(game, walkthrough.slice(0, -1)).won).toBe(false)
    }
  })

  it("have the given numbers of receptacles and objects, up to both limits", () => {
    const [least, most] = sizes[size].receptacles
    const [fewest, largest] = sizes[size].objects
    const counts = households.map((file) => {
      const game = Game.parse(file)
      return { receptacles: game.facts("receptacletype").length, objects: game.facts("objecttype").length }
    })
    for (const [key, low, high] of [
      ["receptacles", least, most],
      ["objects", fewest, largest],
    ] as const) {
      const found = counts.map((count) => count[key])
      expect([Math.min(...found), Math.max(...found)]).toEqual([low, high])
    }
  })

  it("have all task types about equally often, and state the type", () => {
    for (const [i, household] of households.entries()) expect(household.taskType).toBe(tasks[i]!.taskType)
    for (const type of taskTypes) expect(tasks.filter(({ taskType }) => taskType === type).length).toBeGreaterThan(35)
  })

  it("have a location for each receptacle and the agent, and objects only in suitable receptacles", () => {
    for (const file of households) {
      const game = Game.parse(file)
      const places = [...game.facts("receptacleatlocation").map(([, place]) => place), game.facts("atlocation")[0]![1]]
      expect(new Set(places).size).toBe(places.length)
      const typeOf = new Map([...game.facts("objecttype"), ...game.facts("receptacletype")] as [string, string][])
      const placeOf = new Map([...game.facts("objectatlocation"), ...game.facts("receptacleatlocation")] as [
        string,
        string,
      ][])
      const can = new Set(game.facts("cancontain").map(String))
      expect(game.facts("inreceptacle")).toHaveLength(game.facts("objecttype").length)
      for (const [object, receptacle] of game.facts("inreceptacle")) {
        expect(can).toContain(String([typeOf.get(receptacle!), typeOf.get(object!)]))
        expect(placeOf.get(object!)).toBe(placeOf.get(receptacle!))
      }
      expect(game.facts("opened")).toEqual([])
      expect(game.facts("holds")).toEqual([])
    }
  })

  it("hold out whole layouts of every kind of room, distinguishable by observation", () => {
    const layouts = (split: "train" | "valid_seen" | "valid_unseen") =>
      new Set(
        some(2500, split, 2, { size, scenes: 160 }).map(({ scene }) => {
          const { room, receptacles } = layOut(scene, sizes[size].receptacles)
          return `${room}: ${receptacles.map(({ kind }) => kind).sort()}`
        }),
      )
    const [train, seen, unseen] = [layouts("train"), layouts("valid_seen"), layouts("valid_unseen")]
    expect([...seen].filter((layout) => !train.has(layout))).toEqual([])
    expect([...unseen].filter((layout) => train.has(layout))).toEqual([])
    expect(new Set([...unseen].map((layout) => layout.split(":")[0]))).toEqual(new Set(Object.keys(rooms)))
    expect(train.size).toBeGreaterThan(4 * unseen.size)
  })
})

describe("tasks", () => {
  it("are determined by the random generator", () => {
    expect(some(20, "train", 1)).toEqual(some(20, "train", 1))
    expect(some(20, "train", 1)).not.toEqual(some(20, "train", 2))
    expect(some(20, "valid_seen", 1)).toEqual(some(20, "valid_seen", 2))
    expect(some(20, "valid_unseen", 1)).toEqual(some(20, "valid_unseen", 2))
  })

  it("have different seeds in training and validation, so that seen rooms have other contents", () => {
    const seeds = (split: "train" | "valid_seen") => some(2000, split, 1).map(({ seed }) => seed)
    expect(Math.max(...seeds("train"))).toBeLessThan(Math.min(...seeds("valid_seen")))
  })

  it("have the configured types", () => {
    const types: TaskType[] = ["pick_heat_then_place_in_recep", "look_at_obj_in_light"]
    const found = some(40, "train", 1, { taskTypes: types }).map(({ taskType }) => taskType)
    expect(new Set(found)).toEqual(new Set(types))
    expect(generateHousehold(3, { taskTypes: ["pick_two_obj_and_place"] }).taskType).toBe("pick_two_obj_and_place")
  })

  it("report that no scene is suitable", () => {
    expect(() => some(1, "valid_unseen", 1, { scenes: 8, taskTypes: ["pick_heat_then_place_in_recep"] })).toThrow(
      "alfworld: none of the 8 scenes is a valid_unseen room for pick_heat_then_place_in_recep; increase scenes.",
    )
  })
})

describe("a household", () => {
  it("is determined by its task and options", () => {
    const task: HouseholdTask = { seed: 7, scene: 4, taskType: "pick_clean_then_place_in_recep" }
    const base = generateHousehold(task)
    expect(generateHousehold({ ...task })).toEqual(base)
    for (const other of [
      generateHousehold({ ...task, seed: 8 }),
      generateHousehold({ ...task, scene: 8 }),
      generateHousehold({ ...task, taskType: "pick_and_place_simple" }),
      generateHousehold(task, { size: "small" }),
    ]) {
      expect(other.problem).not.toBe(base.problem)
    }
    expect(generateHousehold(7)).toEqual(generateHousehold(7))
    expect(generateHousehold(7).problem).not.toBe(generateHousehold(8).problem)
  })

  it("has the same room for every seed", () => {
    const receptacles = (seed: number) =>
      Game.parse(generateHousehold({ seed, scene: 5, taskType: "pick_and_place_simple" })).facts("receptacleatlocation")
    expect(receptacles(1)).toEqual(receptacles(2))
  })

  it("is a game file of ALFWorld", () => {
    const { domain, grammar, problem, walkthrough } = generateHousehold(1)
    const json = { pddl_domain: domain, grammar, pddl_problem: problem, solvable: true, walkthrough }
    const read = readGameFile(JSON.stringify(json), "test")
    expect(read).toEqual({ domain, grammar, problem, walkthrough, solvable: true })
    const game = Game.parse(read)
    const ids = [...game.facts("inreceptacle").flat(), ...game.facts("receptacleatlocation").map(([id]) => id!)]
    const number = "(minus|plus)_0\\d_dot_\\d\\d"
    const pattern = new RegExp(`^[a-z]+(_bar__${number}){3}(_bar_(sink|bathtub)basin)?$`)
    for (const id of ids) expect(id).toMatch(pattern)
    for (const [, id] of game.facts("atlocation")) expect(id).toMatch(/^loc(_bar_(_minus_)?\d+){2}_bar_[0-3]_bar_\d+$/)
  })

  it("has any configured size", () => {
    for (const size of [
      { receptacles: [4, 4], objects: [4, 4] },
      { receptacles: [46, 46], objects: [200, 200] },
    ] as const) {
      for (let scene = 0; scene < 40; scene++) {
        const { taskTypes } = rooms[roomOf(scene)]
        const file = generateHousehold({ seed: 1, scene, taskType: taskTypes[scene % taskTypes.length]! }, { size })
        const game = Game.parse(file)
        expect(game.facts("receptacletype")).toHaveLength(size.receptacles[0])
        expect(game.facts("objecttype")).toHaveLength(size.objects[0])
        expect(play(game, file.walkthrough).won).toBe(true)
      }
    }
  })

  it("rejects invalid options and tasks", () => {
    const wrong = (options: object) => () => generateHousehold(1, options as HouseholdOptions)
    expect(wrong({ size: "tiny" })).toThrow(/size must be small, medium, large or/)
    expect(wrong({ size: { receptacles: [3, 5], objects: [6, 8] } })).toThrow(/alfworld: size must be/)
    expect(wrong({ size: { receptacles: [6, 5], objects: [6, 8] } })).toThrow(/alfworld: size must be/)
    expect(wrong({ size: { receptacles: [6, 47], objects: [6, 8] } })).toThrow(/alfworld: size must be/)
    expect(wrong({ size: { receptacles: [6, 6] } })).toThrow(/alfworld: size must be/)
    expect(wrong({ taskTypes: [] })).toThrow(/taskTypes must list one or more of pick_and_place_simple, /)
    expect(wrong({ taskTypes: ["pick"] })).toThrow(/taskTypes must list/)
    expect(wrong({ wording: "drop" })).toThrow(/wording must be "move" or "put"/)
    expect(wrong({ sizes: 1 })).toThrow(/sizes is not an option/)
    const task = { seed: 1, scene: 1, taskType: "pick_heat_then_place_in_recep" } as const
    expect(() => generateHousehold(task)).toThrow(
      "Scene 1 is a bedroom, which has no task pick_heat_then_place_in_recep",
    )
    expect(() => generateHousehold({ ...task, scene: -4 })).toThrow("scene must be an integer of at least 0, not -4")
    expect(() => generateHousehold({ ...task, scene: 0, seed: 0.5 })).toThrow("seed must be an integer")
  })
})

describe("tables", () => {
  it("contain a receptacle for every kind of object in every room", () => {
    for (const { always, further, objects } of Object.values(rooms)) {
      const kinds = [...always, ...further.map(([kind]) => kind)]
      for (const object of objects) expect(kinds.filter((kind) => fits(object, kind)).length).toBeGreaterThan(0)
    }
  })

  it("contain only kinds of receptacles that occur, and no duplicate objects", () => {
    const known = new Set(
      Object.values(rooms).flatMap(({ always, further }) => [...always, ...further.map(([kind]) => kind)]),
    )
    for (const { where } of objectKinds.values()) {
      expect(where.filter((kind) => !known.has(kind))).toEqual([])
      expect(new Set(where).size).toBe(where.length)
    }
    for (const { objects } of Object.values(rooms)) expect(new Set(objects).size).toBe(objects.length)
  })

  it("allow every task type in every room that lists it", () => {
    expect([0, 1, 2, 3].map(roomOf)).toEqual(Object.keys(rooms))
    for (const [i, { taskTypes }] of Object.values(rooms).entries()) {
      for (const taskType of taskTypes) {
        for (let scene = i; scene < 80; scene += 4) {
          expect(generateHousehold({ seed: scene, scene, taskType }, { size: "small" }).walkthrough).not.toEqual([])
        }
      }
    }
  })
})

/** What 1.3 of the reference says that each command answers, on a kitchen made by hand. */
describe("texts", () => {
  const { domain, grammar }: GeneratedHousehold = generateHousehold(1, { wording: "move" })
  const at = (x: number) => `loc_bar_${x}_bar_0_bar_0_bar_0`
  const id = (kind: string, x: number) => `${kind}_bar__plus_0${x}_dot_00_bar__plus_00_dot_00_bar__plus_00_dot_00`
  const types = ["Mug", "Apple", "Knife", "ButterKnife", "DeskLamp"]
  const places = ["CounterTop", "Cabinet", "Fridge", "Microwave", "SinkBasin"]
  const spot = (kind: string) =>
    kind === "SinkBasin" ? `${id("Sink", 4)}_bar_SinkBasin` : id(kind, places.indexOf(kind))
  const problem = `(define (problem p) (:domain alfred) (:objects agent1 - agent
    ${types.map((type) => `${type}Type - otype ${id(type, 1)} - object`).join("\n")} ${id("Mug", 2)} - object
    ${places.map((type, i) => `${type}Type - rtype ${spot(type)} - receptacle ${at(i)} - location`).join("\n")} ${at(9)} - location)
    (:init (atLocation agent1 ${at(9)})
    ${places.map((type, i) => `(receptacleType ${spot(type)} ${type}Type) (receptacleAtLocation ${spot(type)} ${at(i)})`).join("\n")}
    ${types.map((type) => `(objectType ${id(type, 1)} ${type}Type) (objectAtLocation ${id(type, 1)} ${at(0)}) (inReceptacle ${id(type, 1)} ${spot("CounterTop")})`).join("\n")}
    (objectType ${id("Mug", 2)} MugType) (objectAtLocation ${id("Mug", 2)} ${at(0)}) (inReceptacle ${id("Mug", 2)} ${spot("CounterTop")})
    ${["Mug", "Apple", "Knife"].map((type) => `(pickupable ${id(type, 1)})`).join(" ")} (isReceptacleObject ${id("Mug", 1)})
    ${["Apple", "Knife"].map((type) => `(cleanable ${id(type, 1)})`).join(" ")} (heatable ${id("Apple", 1)}) (coolable ${id("Apple", 1)})
    (sliceable ${id("Apple", 1)}) (toggleable ${id("DeskLamp", 1)})
    ${["Cabinet", "Fridge", "Microwave"].map((type) => `(openable ${spot(type)})`).join(" ")}
    ${["CounterTop", "Cabinet"].flatMap((place) => types.map((type) => `(canContain ${place}Type ${type}Type)`)).join(" ")})
    (:goal (exists (?o - object) (isSliced ?o))))`
  const start = () => Game.parse({ domain, grammar, problem }).start()

  it("describe the room", () => {
    expect(start().text).toMatch(
      /^-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room\. Looking quickly around you, you see a cabinet 1, a countertop 1, a fridge 1, a microwave 1, and a sinkbasin 1\.\n\nYour task is to: .+\.$/,
    )
  })

  it("describe the effect of each command", () => {
    const world = start()
    const script = [
      ["look", "You are in the middle of a room. Looking quickly around you, you see nothing."],
      ["inventory", "You are not carrying anything."],
      [
        "go to countertop 1",
        "You arrive at countertop 1. On the countertop 1, you see a apple 1, a butterknife 1, a desklamp 1, a knife 1, a mug 2, and a mug 1.",
      ],
      ["look", "You are facing the countertop 1. Next to it, you see nothing."],
      ["use desklamp 1", "You turn on the desklamp 1."],
      ["use desklamp 1", "You turn on the desklamp 1."],
      ["take mug 1 from countertop 1", "Nothing happens."],
      ["take mug 2 from countertop 1", "You pick up the mug 2 from the countertop 1."],
      ["inventory", "You are carrying: a mug 2."],
      ["examine mug 2", "This is a normal mug 2. In it, you see nothing."],
      ["go to cabinet 1", "You arrive at cabinet 1. The cabinet 1 is closed."],
      ["move mug 2 to cabinet 1", "Nothing happens."],
      ["open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see nothing."],
      ["move mug 2 to cabinet 1", "You move the mug 2 to the cabinet 1."],
      ["examine cabinet 1", "The cabinet 1 is open. In it, you see a mug 2."],
      ["close cabinet 1", "You close the cabinet 1."],
      ["examine cabinet 1", "The cabinet 1 is closed."],
      ["take mug 2 from cabinet 1", "Nothing happens."],
      [
        "go to countertop 1",
        "You arrive at countertop 1. On the countertop 1, you see a apple 1, a butterknife 1, a desklamp 1, a knife 1, and a mug 1.",
      ],
      ["take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."],
      ["examine apple 1", "There's nothing special about apple 1."],
      ["go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed."],
      ["heat apple 1 with fridge 1", "Nothing happens."],
      ["cool apple 1 with fridge 1", "You cool the apple 1 using the fridge 1."],
      ["examine apple 1", "This is a cold apple 1."],
      ["go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."],
      ["clean apple 1 with sinkbasin 1", "You clean the apple 1 using the sinkbasin 1."],
      ["examine apple 1", "This is a cool and clean apple 1."],
      ["go to microwave 1", "You arrive at microwave 1. The microwave 1 is closed."],
      ["heat apple 1 with microwave 1", "You heat the apple 1 using the microwave 1."],
      ["examine apple 1", "This is a hot and clean apple 1."],
      [
        "go to countertop 1",
        "You arrive at countertop 1. On the countertop 1, you see a butterknife 1, a desklamp 1, a knife 1, and a mug 1.",
      ],
      ["move apple 1 to countertop 1", "You move the apple 1 to the countertop 1."],
      ["take knife 1 from countertop 1", "You pick up the knife 1 from the countertop 1."],
      ["slice apple 1 with knife 1", "You sliced the apple 1 with the knife 1."],
      ["move knife 1 to countertop 1", "You move the knife 1 to the countertop 1."],
      ["take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."],
      ["examine apple 1", "This is a hot and clean sliced apple 1."],
      ["go to countertop 1", "Nothing happens."],
      ["fly to the moon", "Nothing happens."],
    ] as const
    for (const [i, [command, text]] of script.entries())
      expect([i, command, world.step(command)]).toEqual([i, command, text])
    expect(world.won).toBe(true)
  })

  it("list the commands of version 0.4, in the middle of the room and at an object", () => {
    const world = start()
    const goings = places.map((place) => `go to ${place.toLowerCase()} 1`).sort()
    expect(world.admissible()).toEqual([...goings, "help", "inventory", "look"])
    expect(world.step("help")).toContain("go to (receptacle)")
    world.step("go to countertop 1")
    expect(world.admissible()).toEqual([
      "examine countertop 1",
      ...goings.filter((command) => command !== "go to countertop 1"),
      "help",
      "inventory",
      "look",
      "take apple 1 from countertop 1",
      "take knife 1 from countertop 1",
      "take mug 2 from countertop 1",
      "use desklamp 1",
    ])
  })

  it("use the wording of version 0.2 on request", () => {
    for (let seed = 0; seed < 20; seed++) {
      const file = generateHousehold(seed, { wording: "put", taskTypes: ["pick_and_place_simple"] })
      const { texts, won } = play(Game.parse(file), file.walkthrough)
      expect(won).toBe(true)
      expect(texts[0]).toMatch(/^You arrive at loc \d+\. (On|The) /)
      expect(file.walkthrough.at(-1)).toMatch(/^put \w+ \d+ in\/on \w+ \d+$/)
      expect(texts.at(-1)).toMatch(/^You put the \w+ \d+ in\/on the \w+ \d+\.$/)
    }
  })
})
