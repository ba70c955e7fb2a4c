import type { Algorithm } from "./algorithm.ts"
import { shipped } from "./shipped.ts"
import { around } from "./table/around.ts"
import { curricula } from "./table/curricula.ts"
import { data } from "./table/data.ts"
import { losses } from "./table/losses.ts"
import { others } from "./table/others.ts"
import { outcomes } from "./table/outcomes.ts"
import { prompts } from "./table/prompts.ts"
import { rewards } from "./table/rewards.ts"
import { rollouts } from "./table/rollouts.ts"
import { steps } from "./table/steps.ts"

/** All available algorithms and all systems that cite GiGPO, ordered by what they change first. */
export const algorithms: readonly Algorithm[] = [
  ...shipped,
  ...steps,
  ...outcomes,
  ...around,
  ...losses,
  ...rollouts,
  ...prompts,
  ...curricula,
  ...rewards,
  ...data,
  ...others,
]
