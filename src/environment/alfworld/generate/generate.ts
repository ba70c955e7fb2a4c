import { GigpoError } from "../../../util/errors.ts"
import { Random } from "../../../util/random.ts"
import { readOptions } from "../../options.ts"
import { solveAtStart } from "../expert/expert.ts"
import { Game } from "../game.ts"
import type { GameFile } from "../game-file.ts"
import { type Assignment, assign, goal, isDone, needed, sentence } from "./assignment.ts"
import { domain } from "./domain.ts"
import { grammarText } from "./grammar.ts"
import { type HouseholdOptions, householdFields, type ResolvedHouseholdOptions, rangesOf } from "./options.ts"
import { type Household, type Placed, problemText } from "./problem.ts"
import { rooms } from "./rooms.ts"
import { drawWeighted, layOut, type Places, places, type Receptacle, roomOf, type Scene } from "./scene.ts"
import type { TaskType } from "./task-types.ts"
import type { HouseholdTask } from "./tasks.ts"
import { likelihood, objectKinds } from "./things.ts"

export interface HouseholdTexts extends GameFile {
  readonly assignment: Assignment
  /** Task description. */
  readonly sentence: string
}

/**
 * Generates a household in the format of ALFWorld's games. Equal task and options give equal texts. Every household is solvable: rooms have
 * the receptacles of their tasks, and objects start in suitable places.
 *
 * @throws BAD_ARGUMENT if the scene's kind of room has no tasks of the type
 */
export function householdTexts(task: HouseholdTask, { size, wording }: ResolvedHouseholdOptions): HouseholdTexts {
  const { seed, scene: number, taskType } = check(task)
  const random = new Random(seed).derive("household", number, taskType)
  const { receptacles, objects } = rangesOf(size)
  const scene = layOut(number, receptacles)
  const assignment = assign(taskType, scene, random)
  const count = objects[0] + random.below(objects[1] - objects[0] + 1)
  const household = fill(scene, assignment, count, random)
  const instruction = sentence(assignment, random)

  return {
    assignment,
    sentence: instruction,
    domain,
    grammar: grammarText(instruction, wording),
    problem: problemText(`household_${seed}_${number}`, household, goal(assignment)),
  }
}

export interface GeneratedHousehold extends HouseholdTexts {
  readonly walkthrough: readonly string[]
  readonly taskType: TaskType
}

/**
 * Generates a household with a solution, as in ALFWorld's newer files. The solution takes a search, so this function is meant for files and
 * tests, not for episodes.
 *
 * @param task - task, or a seed for a task of any room and type
 *
 * @throws BAD_CONFIG for invalid options, BAD_ARGUMENT if the scene's kind of room has no tasks of the type
 */
export function generateHousehold(task: HouseholdTask | number, options: HouseholdOptions = {}): GeneratedHousehold {
  const resolved = readOptions("alfworld", options, householdFields)
  const { wording, scenes, taskTypes } = resolved
  const known = typeof task === "number" ? taskOf(task, scenes, taskTypes) : task
  const file = householdTexts(known, resolved)
  return { ...file, walkthrough: solveAtStart(Game.parse(file), wording), taskType: known.taskType }
}

function taskOf(seed: number, scenes: number, taskTypes: readonly TaskType[]): HouseholdTask {
  const random = new Random(seed).derive("household of a seed")
  const taskType = taskTypes[random.below(taskTypes.length)]!
  for (;;) {
    const scene = random.below(scenes)
    if (rooms[roomOf(scene)].taskTypes.includes(taskType)) return { seed, scene, taskType }
  }
}

function check(task: HouseholdTask): HouseholdTask {
  const { seed, scene, taskType } = task
  for (const [name, value] of Object.entries({ seed, scene })) {
    if (Number.isSafeInteger(value) && value >= 0) continue
    throw new GigpoError("BAD_ARGUMENT", `A household's ${name} must be an integer of at least 0, not ${value}.`)
  }
  const room = roomOf(scene)
  if (rooms[room].taskTypes.includes(taskType)) return task
  const types = rooms[room].taskTypes.join(", ")
  throw new GigpoError("BAD_ARGUMENT", `Scene ${scene} is a ${room}, which has no task ${taskType}; use ${types}.`)
}

/** Places objects in suitable receptacles, and the agent at a free location. */
function fill(scene: Scene, assignment: Assignment, count: number, random: Random): Household {
  const place = places(random)
  const possible = rooms[scene.room].objects.filter((kind) => spots(scene, assignment, kind).length > 0)
  const kinds = [...needed(assignment)]
  while (kinds.length < count) kinds.push(possible[random.below(possible.length)]!)
  const objects = kinds.map((kind) => put(kind, spots(scene, assignment, kind), place, random))
  const taken = new Set(scene.receptacles.map((receptacle) => receptacle.location))
  let location = place.location()
  while (taken.has(location)) location = place.location()
  return { receptacles: scene.receptacles, objects, location }
}

/** Receptacles in which an object of this kind may start, so that the goal is not reached at the start. */
function spots(scene: Scene, assignment: Assignment, kind: string): readonly Receptacle[] {
  const { where } = objectKinds.get(kind)!
  return scene.receptacles.filter(
    (receptacle) => where.includes(receptacle.kind) && !isDone(assignment, kind, receptacle.kind),
  )
}

/** Places an object. The probability depends on the kind of receptacle, not on the number of receptacles of the kind. */
function put(kind: string, spots: readonly Receptacle[], place: Places, random: Random): Placed {
  const { where } = objectKinds.get(kind)!
  const kinds = where.filter((one) => spots.some((spot) => spot.kind === one))
  const likely = drawWeighted(kinds, (_, rank) => likelihood(rank), random)
  const same = spots.filter((spot) => spot.kind === likely)
  return { id: place.thing(kind), kind, receptacle: same[random.below(same.length)]! }
}
