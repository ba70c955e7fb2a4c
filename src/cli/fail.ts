import { CommanderError } from "commander"
import { GigpoError, type GigpoErrorCode } from "../util/errors.ts"
import { visible } from "../util/visible.ts"
import { Stopped } from "./terminal/interrupt.ts"

/** Exit code of all other failures. */
export const failed = 4

/** Exit codes by error: 2 for a wrong command or input, 3 for a missing device, build or memory. Others: `failed`. docs/errors.md lists all. */
export const exitCodes: Readonly<Partial<Record<GigpoErrorCode, number>>> = {
  BAD_ARGUMENT: 2,
  BAD_CONFIG: 2,
  UNTRUSTED: 2,
  BAD_DATA: 2,
  BAD_MODEL: 2,
  BAD_TOKENIZER: 2,
  HUB_REJECTED: 2,
  FILE_EXISTS: 2,
  UNSAFE_PATH: 2,
  UNFINISHED_WRITE: 2,
  RUN_EXISTS: 2,
  RUN_MISSING: 2,
  RUN_LOCKED: 2,
  POLICY_BUSY: 2,
  RUN_CORRUPT: 2,
  DEVICE_UNAVAILABLE: 3,
  NATIVE_MISSING: 3,
  OUT_OF_MEMORY: 3,
}

/** Prints an error as one paragraph, with the stack if `debug` is set, and returns the exit code. */
export function reportFailure(thrown: unknown, debug: boolean): number {
  const error = first(thrown)
  // commander has printed its message already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  process.stderr.write(`${visible(describeFailure(error))}\n`)
  if (debug) process.stderr.write(`${visible(inspectStack(error))}\n`)
  if (error instanceof Stopped) return error.exitCode
  return GigpoError.is(error) ? (exitCodes[error.code] ?? failed) : failed
}

/** First error, where disposal failed as well. */
function first(error: unknown): unknown {
  return error instanceof Error && "suppressed" in error ? first(error.suppressed) : error
}

/** Formats an error as "gigpo: message [CODE] (cause)", without repeating the cause. */
export function describeFailure(error: unknown): string {
  const message = messageOf(error)
  const code = GigpoError.is(error) ? error.code : "INTERNAL"
  const shown = error instanceof Error && (error.cause instanceof Error || typeof error.cause === "string")
  const cause = shown ? messageOf(error.cause).split("\n", 1)[0]! : ""
  return `gigpo: ${message} [${code}]${cause && !message.includes(cause) ? ` (cause: ${cause})` : ""}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error)
}

function inspectStack(error: unknown): string {
  const stacks: string[] = []
  for (let inner = error; inner instanceof Error; inner = inner.cause) stacks.push(inner.stack ?? inner.message)
  return stacks.join("\ncaused by: ")
}
