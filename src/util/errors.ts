import { printable } from "./printable.ts"
import { visible } from "./visible.ts"

/** Stable code of an error, to switch on. */
export type GigpoErrorCode =
  | "BAD_ARGUMENT" // an argument has the wrong type, shape or range
  | "BAD_CONFIG" // a configuration file or option is wrong
  | "UNTRUSTED" // data from elsewhere requests running code, contacting a server or writing a folder
  | "BAD_MODEL" // model files are missing, corrupt or of an unknown architecture
  | "BAD_TOKENIZER" // tokenizer files are missing, corrupt, or do not fit the model
  | "BAD_ENVIRONMENT" // an environment broke its contract
  | "BAD_DATA" // data of an environment (games, a catalogue, a corpus) is missing or corrupt
  | "ENVIRONMENT_FAILED" // an environment threw
  | "ENVIRONMENT_TIMEOUT" // an environment did not answer in time
  | "ROLLOUT_TIMEOUT" // a turn, an episode or a group did not end in time
  | "TEMPLATE_TIMEOUT" // a chat template did not finish in time
  | "CONSTRAINT_FAILED" // a completion cannot satisfy its constraint, or only with too much work
  | "NON_FINITE" // a number that must be finite is not
  | "COLLAPSED" // the policy repeats itself or produces nothing to learn from
  | "OUT_OF_MEMORY" // the device has too little memory
  | "DEVICE_UNAVAILABLE" // the requested device is not available
  | "DEVICE_LOST" // the device failed and is no longer usable
  | "ENGINE_REJECTED" // a remote engine rejected or does not support a request
  | "ENGINE_LOST" // a remote engine does not answer, or the result of a request is unknown: resume
  | "HUB_REJECTED" // the Hugging Face Hub rejects a model, or offers none that can be used
  | "HUB_LOST" // the Hugging Face Hub does not answer, or its answer broke off: try again
  | "DISPOSED" // the object was used after dispose()
  | "ABORTED" // stopped before it was done
  | "POLICY_BUSY" // another call trains or evaluates the policy
  | "RUN_EXISTS" // the run folder exists
  | "RUN_MISSING" // the run or checkpoint to resume or fork does not exist
  | "RUN_LOCKED" // another process works in the run folder
  | "RUN_CORRUPT" // a file of a run is damaged, missing or of another version
  | "UNSAFE_PATH" // a link, a pipe or a device in a folder that gigpo manages
  | "UNFINISHED_WRITE" // an interrupted write that was not signed by this user on this machine
  | "FILE_EXISTS" // a file or folder exists that must not be replaced
  | "IO" // a file could not be read or written
  | "NATIVE_MISSING" // no native addon can be loaded on this machine
  | "INTERNAL" // a bug of this package

const brand = Symbol.for("gigpo.error")

/**
 * Error class of this package. `message` states the problem and the fix, `code` is stable across versions, and `cause`
 * is the original error. Texts from elsewhere are escaped in the message, so that they cannot control a terminal.
 */
export class GigpoError extends Error {
  override readonly name = "GigpoError"
  /** Code of the error; docs/errors.md lists all. */
  readonly code: GigpoErrorCode

  constructor(code: GigpoErrorCode, message: string, options?: { cause?: unknown }) {
    super(visible(message), options && { cause: printable(options.cause) })
    this.code = code
    Object.defineProperty(this, brand, { value: true })
  }

  /** Like `instanceof`, but also true across two installed copies of this package. */
  static is(value: unknown): value is GigpoError {
    return typeof value === "object" && value !== null && brand in value
  }
}
