import type { EnvironmentEpisode, Observation, StepResult } from "../environment.ts"
import { Lifecycle } from "../lifecycle.ts"
import type { Connection } from "./connection.ts"
import type { ErrorFrame, ObservationFrame } from "./frames.ts"
import { readObservation } from "./observe.ts"
import type { ResolvedOptions } from "./options.ts"
import type { ServerAddress } from "./server-address.ts"
import { serverError } from "./session.ts"

export interface EpisodeParts {
  readonly address: ServerAddress
  readonly connection: Connection
  readonly first: ObservationFrame
  readonly act: (action: string) => object
  readonly options: ResolvedOptions
  readonly signal: AbortSignal
}

/** Episode of the environment behind a connection, after its reset. */
export function playSession({ address, connection, first, act, options, signal }: EpisodeParts): EnvironmentEpisode {
  const life = new Lifecycle("OpenEnv", signal)
  let now = readObservation(first.observation, options)
  let steps = 0
  let rejected = 0
  return {
    first: now,
    async step(action) {
      life.check()
      const frame = await connection.request({ type: "step", data: act(action) })
      const truncated = ++steps >= options.maxSteps
      if (frame.type === "error") {
        if (!isRefusal(frame)) throw serverError(address, "step", frame)
        rejected++
        if (truncated) life.end()
        const metrics = { success: 0, "rejected-actions": rejected }
        return { observation: refusal(now, frame), reward: 0, terminated: false, truncated, metrics }
      }
      now = readObservation(frame.observation, options)
      const ended = frame.done || truncated
      if (ended) life.end()
      const won = frame.done && (options.success ? options.success(frame) : frame.reward > 0)
      const result: StepResult = {
        observation: now,
        reward: frame.reward,
        terminated: frame.done,
        truncated: truncated && !frame.done,
        metrics: { success: won ? 1 : 0, "rejected-actions": rejected },
      }
      return result
    },
    async [Symbol.asyncDispose]() {
      life.dispose()
      await connection.close()
    },
  }
}

/**
 * Whether the server rejected the content of an action, not its fields; pydantic reports wrong fields as missing or extra_forbidden. An
 * exception of the environment (EXECUTION_ERROR) is attributed to the action, for example an illegal move.
 */
function isRefusal({ code, errors }: ErrorFrame): boolean {
  if (code === "EXECUTION_ERROR") return true
  return code === "VALIDATION_ERROR" && !errors.some(({ type }) => type === "missing" || type === "extra_forbidden")
}

/** Unchanged observation with the reason of the rejection appended for the model. */
function refusal(now: Observation, { message, errors }: ErrorFrame): Observation {
  const [detail] = errors
  const reason = `${message}${detail ? ` (${detail.loc}: ${detail.type})` : ""}`.slice(0, 500)
  return { ...now, text: `${now.text}\n\nThe action was rejected: ${reason}` }
}
