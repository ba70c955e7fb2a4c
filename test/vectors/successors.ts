import { tcod } from "./curricula.ts"
import { dgpo } from "./dgpo.ts"
import { holderSchedules, losses } from "./successor-losses.ts"
import { outcomeTopics } from "./successor-outcomes.ts"
import { rolloutTopics } from "./successor-rollouts.ts"
import { sampleTopics } from "./successor-samples.ts"
import { stepTopics } from "./successor-steps.ts"
import type { Topic } from "./topic.ts"

/** The topics of a file whose topics share a fixture, by name. */
export const successorTopics: Readonly<Record<string, Topic>> = {
  ...outcomeTopics,
  ...rolloutTopics,
  ...sampleTopics,
  ...stepTopics,
  losses,
  holder_p_schedule: holderSchedules,
  tcod_schedule: tcod,
  dgpo,
}
