import { CommanderError } from "commander"
import { GigpoError, type GigpoErrorCode } from "../util/errors.ts"
import { visible } from "../util/visible.ts"
import { Stopped } from "./terminal/interrupt.ts"

/** What failed for another reason. */
export const failed = 4

/** Exit codes that tell what to do: 2 mend the command or its files, 3 mend the machine. Everything else failed: 4. */
const exitCodes: Partial<Record<GigpoErrorCode, number>> = {
  BAD_ARGUMENT: 2,
  BAD_CONFIG: 2,
  UNTRUSTED: 2,
  BAD_DATA: 2,
  BAD_MODEL: 2,
  BAD_TOKENIZER: 2,
  HUB_REFUSED: 2,
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

/** Prints what went wrong as one paragraph, with the stack only where `debug` asks for it, and gives the exit code. */
export function reportFailure(thrown: unknown, debug: boolean): number {
  const error = first(thrown)
  // commander has printed its message already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  process.stderr.write(`${visible(describeFailure(error))}\n`)
  if (debug) process.stderr.write(`${visible(inspectStack(error))}\n`)
  if (error instanceof Stopped) return error.exitCode
  return GigpoError.is(error) ? (exitCodes[error.code] ?? failed) : failed
}

/** What went wrong first, where closing things failed as well. */
function first(error: unknown): unknown {
  return error instanceof Error && "suppressed" in error ? first(error.suppressed) : error
}

/** "gigpo: sentence. [CODE] (cause)", each once. */
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
