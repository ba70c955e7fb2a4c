import { printable } from "./printable.ts"
import { visible } from "./visible.ts"

/** What went wrong, as a stable name to switch on. */
export type GigpoErrorCode =
  | "BAD_ARGUMENT" // an argument has the wrong type, shape or range
  | "BAD_CONFIG" // a configuration file or option is wrong
  | "UNTRUSTED" // data of another origin asks for code to run, a server to contact, or a folder to write
  | "BAD_MODEL" // model files are missing, corrupt or of an unknown architecture
  | "BAD_TOKENIZER" // tokenizer files are missing, corrupt, or do not fit the model
  | "BAD_ENVIRONMENT" // an environment broke its contract
  | "BAD_DATA" // data of an environment (games, a catalogue, a corpus) is missing or corrupt
  | "ENVIRONMENT_FAILED" // an environment threw
  | "ENVIRONMENT_TIMEOUT" // an environment did not answer in time
  | "ROLLOUT_TIMEOUT" // a turn, an episode or a group was not over in time
  | "TEMPLATE_TIMEOUT" // a chat template did not finish in time
  | "CONSTRAINT_FAILED" // a reply cannot go on as its constraint must, or only by too much work
  | "NON_FINITE" // a number that must be finite is not
  | "COLLAPSED" // the policy says the same again and again, or nothing that can be learned from
  | "OUT_OF_MEMORY" // the device has too little memory for what was asked
  | "DEVICE_UNAVAILABLE" // the device that was asked for is not there
  | "DEVICE_LOST" // the device failed and cannot be used any more
  | "ENGINE_REFUSED" // a remote engine cannot or will not do what was asked
  | "ENGINE_LOST" // a remote engine does not answer, or what became of a request is not known: resume
  | "HUB_REFUSED" // the Hugging Face Hub does not give a model, or gives none that can be used
  | "HUB_LOST" // the Hugging Face Hub does not answer, or its answer broke off: try again
  | "DISPOSED" // the object was used after dispose()
  | "ABORTED" // stopped before it was done
  | "POLICY_BUSY" // another call trains or evaluates the policy
  | "RUN_EXISTS" // the run folder is already there
  | "RUN_MISSING" // there is no run, or no checkpoint of one, to resume or to fork
  | "RUN_LOCKED" // another process works in the run folder
  | "RUN_CORRUPT" // the run folder cannot be resumed
  | "UNSAFE_PATH" // a link, a pipe or a device in a folder that gigpo manages
  | "UNFINISHED_WRITE" // an interrupted write that this user's journal on this machine does not know
  | "FILE_EXISTS" // something that is not to be replaced is in the way of what would be written
  | "IO" // a file could not be read or written
  | "NATIVE_MISSING" // no build of the native addon fits this machine
  | "INTERNAL" // a fault of this package

const brand = Symbol.for("gigpo.error")

/**
 * The one error class of this package. `message` says what is wrong and how to mend it, `code` is stable across
 * versions, `cause` keeps the original error. Texts of other parties in the message cannot control a terminal.
 */
export class GigpoError extends Error {
  override readonly name = "GigpoError"
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
