import { inspect } from "node:util"
import type { Message, Observation, ParsedAction, StepResult } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"

// What the loop relies on, checked where an environment's answers come in: a broken one then costs its own episode only.

/** The advantage estimators take none that are larger: the squares of their statistics must stay finite. */
const largestReward = 1e100

export function checkObservation(name: string, call: string, observation: Observation | undefined): void {
  if (typeof observation?.text !== "string" || typeof observation.anchor !== "string")
    throw broken(name, `${call} gave no observation with the strings text and anchor`)
}

export function checkMessages(name: string, messages: Message[]): Message[] {
  const isMessage = (message: Message | null) =>
    typeof message?.role === "string" && typeof message.content === "string"
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(isMessage))
    throw broken(name, "prompt() must give at least one message, each with the strings role and content")
  return messages
}

export function checkParsed(name: string, parsed: ParsedAction): ParsedAction {
  if (typeof parsed?.action !== "string" || typeof parsed.valid !== "boolean")
    throw broken(name, "parse() must give the string action and the boolean valid")
  return parsed
}

export function checkResult(name: string, result: StepResult): StepResult {
  checkObservation(name, "step()", result?.observation)
  const { reward, terminated, truncated, metrics = {} } = result
  if (!Number.isFinite(reward) || Math.abs(reward) > largestReward) {
    const rule = `rewards must be finite numbers, at most ${largestReward} in size`
    throw new GigpoError("NON_FINITE", `${name}: step() gave the reward ${inspect(reward)}; ${rule}.`)
  }
  if (typeof terminated !== "boolean" || typeof truncated !== "boolean")
    throw broken(name, "step() must give the booleans terminated and truncated")
  for (const [metric, value] of Object.entries(metrics)) {
    if (Number.isFinite(value)) continue
    const found = `step() gave the metric ${metric} as ${inspect(value)}`
    throw new GigpoError("NON_FINITE", `${name}: ${found}; metrics must be finite numbers.`)
  }
  return result
}

/** Whatever an environment threw, as a `GigpoError` that names the environment. */
export function environmentError(name: string, error: unknown): GigpoError {
  if (GigpoError.is(error)) return error
  const message = error instanceof Error ? error.message : inspect(error)
  return new GigpoError("ENVIRONMENT_FAILED", `${name}: ${message}`, { cause: error })
}

function broken(name: string, rule: string): GigpoError {
  return new GigpoError("BAD_ENVIRONMENT", `${name}: ${rule}.`)
}
