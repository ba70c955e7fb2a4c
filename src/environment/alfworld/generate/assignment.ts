import type { Random } from "../../../util/random.ts"
import { rooms } from "./rooms.ts"
import type { Scene } from "./scene.ts"
import { type TaskType, treatments } from "./task-types.ts"
import { type ObjectKind, objectKinds } from "./things.ts"

/** Goal of a household task: a kind of object, and the kind of receptacle or lamp for it. */
export interface Assignment {
  readonly taskType: TaskType
  readonly object: string
  readonly target: string
}

const lamp = "DeskLamp"

/** Two descriptions of each type of task. */
const sentences: Readonly<Record<TaskType, readonly [string, string]>> = {
  pick_and_place_simple: ["place a {object} in {target}", "bring some {object} to {target}"],
  look_at_obj_in_light: ["inspect {object} under the {target}", "hold the {object} into the light of the {target}"],
  pick_clean_then_place_in_recep: ["place a clean {object} in {target}", "wash some {object} and bring it to {target}"],
  pick_heat_then_place_in_recep: ["place a hot {object} in {target}", "warm up some {object} and bring it to {target}"],
  pick_cool_then_place_in_recep: ["place a cool {object} in {target}", "chill some {object} and bring it to {target}"],
  pick_two_obj_and_place: ["place two {object} in {target}", "gather two {object} and bring them to {target}"],
}

/** Draws a task of a type for a scene. The templates of rooms guarantee at least one for each of their types. */
export function assign(taskType: TaskType, scene: Scene, random: Random): Assignment {
  const present = new Set(scene.receptacles.map(({ kind }) => kind))
  const choices = rooms[scene.room].objects
    .map((name) => ({ object: name, targets: targets(taskType, objectKinds.get(name)!, present) }))
    .filter(({ targets }) => targets.length > 0)
  const { object, targets: kinds } = choices[random.below(choices.length)]!
  return { taskType, object, target: kinds[random.below(kinds.length)]! }
}

function targets(taskType: TaskType, { can, where }: ObjectKind, present: ReadonlySet<string>): readonly string[] {
  const here = where.filter((kind) => present.has(kind))
  if (can.has("toggle")) return []
  if (taskType === "look_at_obj_in_light") return here.length > 0 ? [lamp] : []
  const treatment = treatments[taskType]
  // Without a treatment, the goal is only the location, so another receptacle is needed where the object can start.
  if (!treatment) return here.length > 1 ? here : []
  return can.has(treatment.verb) ? here.filter((kind) => kind !== treatment.appliance) : []
}

/** Whether an object of this kind in this kind of receptacle would fulfil the task, or a part of it, at the start. */
export function isDone({ taskType, object, target }: Assignment, kind: string, receptacle: string): boolean {
  return kind === object && receptacle === target && !treatments[taskType]
}

/** Kinds of objects that the task requires, one entry per object. */
export function needed({ taskType, object }: Assignment): readonly string[] {
  if (taskType === "look_at_obj_in_light") return [object, lamp]
  return taskType === "pick_two_obj_and_place" ? [object, object] : [object]
}

export function sentence({ taskType, object, target }: Assignment, random: Random): string {
  const template = sentences[taskType][random.below(2)]!
  return template.replace("{object}", object.toLowerCase()).replace("{target}", target.toLowerCase())
}

/** Goal as a PDDL formula. */
export function goal({ taskType, object, target }: Assignment): string {
  if (taskType === "look_at_obj_in_light") {
    return `(and
      (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and
        (objectType ?ot ${target}Type) (toggleable ?ot) (isToggled ?ot)
        (inReceptacle ?ot ?r) (receptacleAtLocation ?r ?l) (atLocation ?a ?l)))
      (exists (?o - object ?a - agent) (and (objectType ?o ${object}Type) (holds ?a ?o))))`
  }
  const there = (o: string) => `(objectType ${o} ${object}Type) (inReceptacle ${o} ?r)`
  const treatment = treatments[taskType]
  const wantedObjects =
    taskType === "pick_two_obj_and_place"
      ? `${there("?o1")} (exists (?o2 - object) (and (not (= ?o1 ?o2)) ${there("?o2")}))`
      : there("?o1") + (treatment ? ` (${treatment.verb}able ?o1) (${treatment.result} ?o1)` : "")
  return `(exists (?r - receptacle) (and (receptacleType ?r ${target}Type)
      (exists (?o1 - object) (and ${wantedObjects}))))`
}
