import { field, integer, oneOf } from "../../../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../../../options/table.ts"
import type { Wording } from "./grammar.ts"
import { type TaskType, taskTypes } from "./task-types.ts"

type Range = readonly [least: number, most: number]

/** Numbers of receptacles and objects of a generated household, as inclusive ranges. */
export interface HouseholdSize {
  /** Number of receptacles, within 4 to 46, the maximum of a bathroom. */
  readonly receptacles: Range
  /** Number of objects, within 4 to 200. */
  readonly objects: Range
}

export const sizes = {
  small: { receptacles: [4, 6], objects: [6, 8] },
  medium: { receptacles: [9, 13], objects: [15, 22] },
  large: { receptacles: [17, 28], objects: [40, 54] },
} as const satisfies Record<string, HouseholdSize>

export const householdFields = {
  size: field<keyof typeof sizes | HouseholdSize, string>(
    "medium",
    'Size of households. "small": lists short enough for a model with a million parameters trained from scratch; ' +
      '"large": as in ALFWorld\'s files; or { receptacles, objects }, each with minimum and maximum.',
    sizeProblem,
  ),
  taskTypes: field(taskTypes as readonly TaskType[], "Types of tasks, each with equal frequency.", (value) =>
    Array.isArray(value) && value.length > 0 && value.every((type) => taskTypes.includes(type))
      ? undefined
      : `must list one or more of ${taskTypes.join(", ")}`,
  ),
  wording: oneOf<Wording, Wording, string>(
    "move",
    ["move", "put"],
    'Wording of commands and observations: that of ALFWorld 0.4 ("move") or 0.2 ("put").',
  ),
  scenes: integer(
    480,
    "Number of generated rooms, a quarter of each kind; 8 to 1,000,000. One layout in eight is held out from training.",
    { min: 8, max: 1_000_000 },
  ),
}

export type HouseholdOptions = OptionsOf<typeof householdFields>
export type ResolvedHouseholdOptions = ResolvedOf<typeof householdFields>

function sizeProblem(value: unknown): string | undefined {
  const isRange = (range: unknown, most: number) =>
    Array.isArray(range) &&
    range.length === 2 &&
    range.every((end) => Number.isInteger(end)) &&
    4 <= range[0] &&
    range[0] <= range[1] &&
    range[1] <= most
  const isSize = (size: HouseholdSize | null) =>
    typeof size === "object" && size !== null && isRange(size.receptacles, 46) && isRange(size.objects, 200)
  return (typeof value === "string" && Object.hasOwn(sizes, value)) || isSize(value as HouseholdSize | null)
    ? undefined
    : `must be ${Object.keys(sizes).join(", ")} or { receptacles: [4 … 46, 4 … 46], objects: [4 … 200, 4 … 200] }`
}

export function rangesOf(size: keyof typeof sizes | HouseholdSize): HouseholdSize {
  return typeof size === "string" ? sizes[size] : size
}
