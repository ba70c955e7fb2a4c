import type { Environment } from "../environment/environment.ts"
import { ended } from "../options/display.ts"
import { checkMethods } from "../rollout/check-setup.ts"
import { type ExpertStep, playExpert } from "../rollout/expert.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { drawnTasks } from "../rollout/tasks.ts"
import { guardFields } from "../training/guards/options.ts"
import type { Progress } from "../training/progress.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import type { Random } from "../util/random.ts"
import { visible } from "../util/visible.ts"
import { warner } from "../util/warn.ts"

export interface ExpertEpisodes<Task = unknown> {
  readonly environment: Environment<Task>
  /** Most tasks of the training split that it plays, one episode each. */
  readonly tasks: number
  readonly random: Random
  readonly signal?: AbortSignal | undefined
  /** Told of how many episodes were played. */
  readonly onExpert?: ((progress: Progress) => void) | undefined
  /** Told of failed episodes. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Most share of the episodes that may fail: where more do, the tasks that are left are others than those asked for. */
const failureShare = guardFields.failureShare.default

/**
 * The steps of an environment's expert, episode by episode, each task drawn when its turn comes. One that throws is counted and left
 * out.
 *
 * @throws GigpoError what the first failed episode did, where too many fail; `BAD_ENVIRONMENT` where there is no expert.
 */
export async function* expertEpisodes<Task>(
  setup: ExpertEpisodes<Task>,
): AsyncGenerator<readonly ExpertStep[], void, undefined> {
  const { environment, tasks, random, signal, onExpert } = setup
  const onWarning = warner(setup.onWarning)
  checkMethods("environment", environment, ["tasks"])
  if (!environment.expert)
    throw new GigpoError("BAD_ENVIRONMENT", `${environment.name} has no expert to learn from; use a pretrained model.`)
  using drawn = drawnTasks(environment, "train", random.fork("tasks"))
  const pace = new Pace(signal)
  const failed = new Failed()
  for (let index = 0; index < tasks; index++) {
    if (pace.due()) await pace.rest() // an expert that never waits must not keep signals from their turn
    const task = drawn.next()
    if (task === undefined) break
    onExpert?.({ stage: "expert", done: index, total: tasks })
    const steps: ExpertStep[] = []
    try {
      const own = random.fork("environment", index)
      for await (const step of playExpert({ ...rolloutDefaults, environment, task, random: own, signal }))
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

/** Episodes of an expert, of which some may fail. */
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

  /** Throws what the first did, where too many failed; tells of few. */
  report(onWarning: (message: string) => void): void {
    if (!this.#first) return
    const { index, error } = this.#first
    const failures = `${this.#failed} of ${this.#played} episodes of the expert failed, the first of them that of task ${index}: ${ended(error.message)}`
    if (this.#failed > failureShare * this.#played)
      throw new GigpoError(error.code, `${failures} Mend the environment or its expert.`, { cause: error })
    onWarning(`${failures} They are left out.`)
  }
}

/** Replies of an expert, of which the environment, or the endpoint that an agent calls, may be unable to read some. */
export class Invalid {
  #replies = 0
  #invalid = 0
  #first: string | undefined

  count(valid: boolean, reply: string): void {
    this.#replies++
    if (valid) return
    this.#invalid++
    this.#first ??= reply
  }

  /** Throws where no reply is valid: nothing that works would be learned. Tells of some. */
  report(onWarning: (message: string) => void): void {
    if (this.#first === undefined) return
    const shown = visible(JSON.stringify(this.#first.slice(0, 200)))
    if (this.#invalid === this.#replies)
      throw new GigpoError(
        "BAD_ENVIRONMENT",
        `None of the expert's ${this.#replies} replies is valid, the first of them ${shown}: have it reply in the form that the environment's parse reads, or with calls that the model's tool format has.`,
      )
    onWarning(
      `${this.#invalid} of the expert's ${this.#replies} replies are invalid, the first of them ${shown}. They are learned all the same; mend the expert where that is not meant.`,
    )
  }
}
