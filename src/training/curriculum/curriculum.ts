import type { Environment } from "../../environment/environment.ts"
import type { CustomValue, ResolvedOf } from "../../options/table.ts"
import type { RolloutHooks, TaskSource } from "../../rollout/hooks.ts"
import type { rolloutFields } from "../../rollout/options.ts"

// Interface of curricula: rollout hooks and a source of tasks that work together.

/** Curriculum: choice of tasks, start states and step limits. Its hooks are called before the other hooks of a training run; see `joinHooks`. */
export interface Curriculum<Task = unknown> {
  /** Name, for messages. */
  readonly name: string
  /** Returns the hooks of one training run. Called once per training, before the first rollout. */
  open(setup: CurriculumSetup<Task>): CurriculumHooks<Task>
}

/** Settings of a training run, as a curriculum receives them. */
export interface CurriculumSetup<Task = unknown> {
  /** Environment; undefined if an agent plays and `tasks` provides the tasks. */
  readonly environment?: Environment<Task> | undefined
  /** Options of the rollout, with their defaults. */
  readonly rollout: ResolvedOf<typeof rolloutFields>
  /** Seed of the run. */
  readonly seed: number
  /** Number of tasks per iteration. */
  readonly groups: number
}

/** Hooks of a curriculum: rollout hooks, and `next` for a curriculum that chooses tasks. */
export interface CurriculumHooks<Task = unknown> extends RolloutHooks<Task>, Partial<Pick<TaskSource<Task>, "next">> {}

/** Custom curriculum. */
export const customCurriculum: CustomValue<Curriculum> = {
  validate: (value) => {
    const { name, open } = (value ?? {}) as Partial<Curriculum>
    if (typeof name === "string" && name.trim() !== "" && typeof open === "function") return undefined
    return "must be a curriculum: an object with name and open"
  },
  meant: (value) => "open" in value,
}
