import type { Environment } from "../environment/environment.ts"
import { ended } from "../options/display.ts"
import { checkMethods } from "../rollout/check-setup.ts"
import { type ExpertStep, streamExpert } from "../rollout/expert.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { drawnTasks } from "../rollout/tasks.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import type { Random } from "../util/random.ts"
import { visible } from "../util/visible.ts"
import { warner } from "../util/warn.ts"
import { guardFields } from "./guards/options.ts"
import type { StageProgress } from "./progress.ts"

export interface ExpertEpisodes<Task = unknown> {
  readonly environment: Environment<Task>
  /** Maximum number of tasks of the training split, one episode each. */
  readonly tasks: number
  readonly random: Random
  readonly signal?: AbortSignal | undefined
  /** Called with the number of played episodes. */
  readonly onExpert?: ((progress: StageProgress) => void) | undefined
  /** Called with a warning about failed episodes. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Maximum share of failed episodes: if more fail, the remaining tasks have another distribution than requested. */
const maxFailed = guardFields.maxFailed.default

/**
 * Yields the steps of an environment's expert, episode by episode. Failed episodes are counted and left out.
 *
 * @throws GigpoError the error of the first failed episode, if too many fail; `BAD_ENVIRONMENT` for an environment without an expert.
 */
export async function* expertEpisodes<Task>(
  setup: ExpertEpisodes<Task>,
): AsyncGenerator<readonly ExpertStep[], void, undefined> {
  const { environment, tasks, random, signal, onExpert } = setup
  const onWarning = warner(setup.onWarning)
  checkMethods("environment", environment, ["tasks"])
  if (!environment.expert)
    throw new GigpoError("BAD_ENVIRONMENT", `${environment.name} has no expert to learn from; use a pretrained model.`)
  using drawn = drawnTasks(environment, "train", random.derive("tasks"))
  const pace = new Pace(signal)
  const failed = new Failed()
  for (let index = 0; index < tasks; index++) {
    if (pace.due()) await pace.rest() // signals must be handled also with an expert that never waits
    const task = drawn.next()
    if (task === undefined) break
    onExpert?.({ stage: "expert", done: index, total: tasks })
    const steps: ExpertStep[] = []
    try {
      const own = random.derive("environment", index)
      for await (const step of streamExpert({ ...rolloutDefaults, environment, task, random: own, signal }))
        steps.push(step)
    } catch (error) {
      signal?.throwIfAborted()
      failed.count(index, error as GigpoError)
      continue
    }
    failed.count(index)
    yield steps
  }
  failed.report(onWarning)
}

/** Counter of failed episodes of an expert. */
export class Failed {
  #played = 0
  #failed = 0
  #first: { readonly index: number; readonly error: GigpoError } | undefined

  count(index: number, error?: GigpoError | undefined): void {
    this.#played++
    if (!error) return
    this.#failed++
    this.#first ??= { index, error }
  }

  /** Throws the first error where too many episodes failed. Otherwise warns about failed episodes. */
  report(onWarning: (message: string) => void): void {
    if (!this.#first) return
    const { index, error } = this.#first
    const failures = `${this.#failed} of ${this.#played} episodes of the expert failed, the first of them on task ${index}: ${ended(error.message)}`
    if (this.#failed > maxFailed * this.#played)
      throw new GigpoError(error.code, `${failures} Fix the environment or its expert.`, { cause: error })
    onWarning(`${failures} They are left out.`)
  }
}

/** Counter of completions of an expert that the environment or the endpoint of an agent cannot parse. */
export class Invalid {
  #completions = 0
  #invalid = 0
  #first: string | undefined

  count(valid: boolean, completion: string): void {
    this.#completions++
    if (valid) return
    this.#invalid++
    this.#first ??= completion
  }

  /** Throws if no completion is valid. Otherwise warns about invalid ones. */
  report(onWarning: (message: string) => void): void {
    if (this.#first === undefined) return
    const shown = visible(JSON.stringify(this.#first.slice(0, 200)))
    if (this.#invalid === this.#completions)
      throw new GigpoError(
        "BAD_ENVIRONMENT",
        `None of the expert's ${this.#completions} completions is valid, the first of them ${shown}: return completions in the format that parse() of the environment reads, or with calls in the tool format of the model.`,
      )
    onWarning(
      `${this.#invalid} of the expert's ${this.#completions} completions are invalid, the first of them ${shown}. They are trained on nevertheless; fix the expert if this is not intended.`,
    )
  }
}
