/** ALFWorld's six types of tasks by the names in its files, in the order of their numbers 1 … 6. */
export const taskTypes = [
  "pick_and_place_simple",
  "look_at_obj_in_light",
  "pick_clean_then_place_in_recep",
  "pick_heat_then_place_in_recep",
  "pick_cool_then_place_in_recep",
  "pick_two_obj_and_place",
] as const

/** Type of household task. */
export type TaskType = (typeof taskTypes)[number]

/** Treatment of an object that some types of tasks require. */
export interface Treatment {
  readonly verb: "clean" | "heat" | "cool"
  /** Kind of receptacle that applies the treatment. */
  readonly appliance: string
  /** Predicate that holds after the treatment. */
  readonly result: string
}

export const treatments: { readonly [Type in TaskType]?: Treatment } = {
  pick_clean_then_place_in_recep: { verb: "clean", appliance: "SinkBasin", result: "isClean" },
  pick_heat_then_place_in_recep: { verb: "heat", appliance: "Microwave", result: "isHot" },
  pick_cool_then_place_in_recep: { verb: "cool", appliance: "Fridge", result: "isCool" },
}
