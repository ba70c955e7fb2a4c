import { type Field, type Fields, oneOf, type Resolved, whole } from "../../options.ts"
import type { Wording } from "./grammar.ts"
import { type TaskType, taskTypes } from "./task-types.ts"

type Range = readonly [least: number, most: number]

/** How many receptacles and objects a household has; both ends included. */
export interface HouseholdSize {
  /** From 4 to 46; a bathroom has room for no more. */
  readonly receptacles: Range
  /** From 4 to 200. */
  readonly objects: Range
}

export interface HouseholdOptions {
  /**
   * Default "medium". "small": lists short enough for a model of a million weights to learn them from nothing;
   * "large": as in ALFWorld's own files.
   */
  readonly size?: keyof typeof sizes | HouseholdSize
  /** Kinds of tasks, each as frequent as the others. Default all six. */
  readonly taskTypes?: readonly TaskType[]
  /** Default "move", as ALFWorld 0.4 words it; "put" as 0.2. */
  readonly wording?: Wording
  /**
   * Rooms drawn: 8 to 1,000,000, a fourth of each kind. Default 480. One layout in eight is held out from training.
   */
  readonly scenes?: number
}

export type ResolvedHouseholdOptions = Resolved<HouseholdOptions>

export const sizes = {
  small: { receptacles: [4, 6], objects: [6, 8] },
  medium: { receptacles: [9, 13], objects: [15, 22] },
  large: { receptacles: [17, 28], objects: [40, 54] },
} as const satisfies Record<string, HouseholdSize>

/** The table that checks them, for an environment's own options to take in. */
export const householdFields: Fields<HouseholdOptions> = {
  size: sizeField(),
  taskTypes: {
    fallback: taskTypes,
    problem: (value) =>
      Array.isArray(value) && value.length > 0 && value.every((type) => taskTypes.includes(type))
        ? undefined
        : `must list one or more of ${taskTypes.join(", ")}`,
  },
  wording: oneOf<Wording>("move", ["move", "put"]),
  scenes: whole(480, 8, 1_000_000),
}

function sizeField(): Field<keyof typeof sizes | HouseholdSize> {
  const isRange = (value: unknown, most: number) =>
    Array.isArray(value) &&
    value.length === 2 &&
    value.every((end) => Number.isInteger(end)) &&
    4 <= value[0] &&
    value[0] <= value[1] &&
    value[1] <= most
  const isSize = (value: HouseholdSize | null) =>
    typeof value === "object" && value !== null && isRange(value.receptacles, 46) && isRange(value.objects, 200)
  return {
    fallback: "medium",
    problem: (value) =>
      (typeof value === "string" && Object.hasOwn(sizes, value)) || isSize(value as HouseholdSize | null)
        ? undefined
        : `must be ${Object.keys(sizes).join(", ")} or { receptacles: [4 … 46, 4 … 46], objects: [4 … 200, 4 … 200] }`,
  }
}

export function rangesOf(size: keyof typeof sizes | HouseholdSize): HouseholdSize {
  return typeof size === "string" ? sizes[size] : size
}
