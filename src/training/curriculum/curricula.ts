import type { Named } from "../../options/named.ts"
import type { OptionFields } from "../../options/table.ts"
import { actGuideCurriculum, actGuideCurriculumFields } from "./act-guide.ts"
import { bySuccessFields, successCurriculum } from "./by-success.ts"
import type { Curriculum } from "./curriculum.ts"
import { horizonCurriculum, horizonFields } from "./horizon.ts"
import { tcodCurriculum, tcodFields } from "./tcod.ts"

/** Built-in curricula by their names in configurations. */
export const curricula = {
  tcod: { fields: tcodFields, make: tcodCurriculum },
  horizon: { fields: horizonFields, make: horizonCurriculum },
  "act-guide": { fields: actGuideCurriculumFields, make: actGuideCurriculum },
  "by-success": { fields: bySuccessFields, make: successCurriculum },
} satisfies Readonly<Record<string, Named<OptionFields, Curriculum>>>
