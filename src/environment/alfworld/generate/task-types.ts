/** ALFWorld's six kinds of tasks, by the names that its files carry, in the order of their numbers 1 … 6. */
export const taskTypes = [
  "pick_and_place_simple",
  "look_at_obj_in_light",
  "pick_clean_then_place_in_recep",
  "pick_heat_then_place_in_recep",
  "pick_cool_then_place_in_recep",
  "pick_two_obj_and_place",
] as const

/** Kind of household task. */
export type TaskType = (typeof taskTypes)[number]

/** What some tasks ask to do with an object before it is put down. */
export interface Treatment {
  readonly verb: "clean" | "heat" | "cool"
  /** The one kind of receptacle that does it. */
  readonly appliance: string
  /** The predicate that then holds. */
  readonly result: string
}

export const treatments: { readonly [Type in TaskType]?: Treatment } = {
  pick_clean_then_place_in_recep: { verb: "clean", appliance: "SinkBasin", result: "isClean" },
  pick_heat_then_place_in_recep: { verb: "heat", appliance: "Microwave", result: "isHot" },
  pick_cool_then_place_in_recep: { verb: "cool", appliance: "Fridge", result: "isCool" },
}
