import type { Environment } from "../../environment/environment.ts"
import type { CustomValue, Resolved } from "../../options/table.ts"
import type { RolloutHooks, TaskSource } from "../../rollout/hooks.ts"
import type { rolloutFields } from "../../rollout/options.ts"

// The seam of what is played, from where and for how long, as training goes on: hooks and a source of tasks that work as one.

/** A curriculum, by name or of one's own. It stands before the hooks that a training has besides; see `joinHooks`. */
export interface Curriculum<Task = unknown> {
  readonly name: string
  /** Once a training, before its first rollout: what it gives has the training's state. */
  open(setup: CurriculumSetup<Task>): CurriculumHooks<Task>
}

/** Values of a training with which a curriculum is opened. */
export interface CurriculumSetup<Task = unknown> {
  /** Left out where an agent plays tasks of its own. */
  readonly environment?: Environment<Task> | undefined
  readonly rollout: Resolved<typeof rolloutFields>
  readonly seed: number
  /** Tasks of an iteration. */
  readonly groups: number
}

/** Any of a rollout's hooks, and `next` where it chooses tasks. */
export interface CurriculumHooks<Task = unknown> extends RolloutHooks<Task>, Partial<Pick<TaskSource<Task>, "next">> {}

/** A curriculum of one's own. */
export const customCurriculum: CustomValue<Curriculum> = {
  validate: (value) => {
    const { name, open } = (value ?? {}) as Partial<Curriculum>
    if (typeof name === "string" && name.trim() !== "" && typeof open === "function") return undefined
    return "must be a curriculum: an object with name and open"
  },
  meant: (value) => "open" in value,
}
