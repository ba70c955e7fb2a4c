import type { Named } from "../../options/named.ts"
import type { Fields } from "../../options/table.ts"
import { actGuideCurriculum, actGuideCurriculumFields } from "./act-guide.ts"
import { bySuccess, bySuccessFields } from "./by-success.ts"
import type { Curriculum } from "./curriculum.ts"
import { horizon, horizonFields } from "./horizon.ts"
import { tcod, tcodFields } from "./tcod.ts"

/** Built-in curricula by their names in configurations. */
export const curricula = {
  tcod: { fields: tcodFields, make: tcod },
  horizon: { fields: horizonFields, make: horizon },
  "act-guide": { fields: actGuideCurriculumFields, make: actGuideCurriculum },
  "by-success": { fields: bySuccessFields, make: bySuccess },
} satisfies Readonly<Record<string, Named<Fields, Curriculum>>>
