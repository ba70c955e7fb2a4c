// `gigpo/curricula`: choice of tasks, start states and step limits as training progresses.

import "../check-node.mts"

export { type ActGuideCurriculumOptions, actGuideCurriculum } from "../training/curriculum/act-guide.ts"
export { type BySuccessOptions, successCurriculum } from "../training/curriculum/by-success.ts"
export type { Curriculum, CurriculumHooks, CurriculumSetup } from "../training/curriculum/curriculum.ts"
export { type HorizonOptions, horizonCurriculum } from "../training/curriculum/horizon.ts"
export { type TcodOptions, tcodCurriculum } from "../training/curriculum/tcod.ts"
