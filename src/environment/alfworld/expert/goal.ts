import { type TaskType, type Treatment, treatments } from "../generate/task-types.ts"
import type { Expression } from "../s-expression.ts"

/** Goal of a game. Kinds are type names without their suffix, in lower case, as in display names. */
export interface Goal {
  readonly taskType: TaskType
  /** Kind of the objects to find. */
  readonly object: string
  /** Number of objects. */
  readonly count: 1 | 2
  /** Kind of the target receptacle, or of the lamp. */
  readonly target: string
  readonly treatment?: Treatment
}

/** Treatments with the names in goal formulas. */
const named = Object.entries(treatments).map(([taskType, { verb, appliance, result }]) => ({
  taskType: taskType as TaskType,
  treatment: { verb, appliance: appliance.toLowerCase(), result: result.toLowerCase() },
}))

/** Reads the goal formula of one of the six task types; `undefined` for other goals, such as sliced objects. */
export function readGoal(formula: Expression): Goal | undefined {
  const atoms = atomsOf(formula)
  const find = (predicate: string) => atoms.find(([name]) => name === predicate)
  const typeOf = (variable: string | undefined) =>
    kindOf(atoms.find(([name, one]) => name === "objecttype" && one === variable)?.[2])
  if (find("issliced")) return undefined

  const toggled = find("istoggled")
  if (toggled) {
    const [object, target] = [typeOf(find("holds")?.[2]), typeOf(toggled[1])]
    return object && target ? { taskType: "look_at_obj_in_light", object, target, count: 1 } : undefined
  }
  const object = typeOf(find("inreceptacle")?.[1])
  const target = kindOf(find("receptacletype")?.[2])
  if (!object || !target) return undefined
  const treated = named.find(({ treatment }) => find(treatment.result))
  if (treated) return { ...treated, object, target, count: 1 }
  // Goals with two objects contain (not (= ?o1 ?o2)).
  return find("=")
    ? { taskType: "pick_two_obj_and_place", object, target, count: 2 }
    : { taskType: "pick_and_place_simple", object, target, count: 1 }
}

export function kindOf(type: string | undefined): string | undefined {
  return type?.replace(/type$/, "")
}

/** All atoms `(predicate argument ..)` of a formula. */
function atomsOf(formula: Expression): readonly (readonly string[])[] {
  if (typeof formula === "string") return []
  if (formula.every((part) => typeof part === "string")) return [formula as readonly string[]]
  return formula.flatMap(atomsOf)
}
