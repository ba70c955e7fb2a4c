import { type AgentOptions, agentFields } from "../agent.ts"
import type { Observation } from "../environment.ts"
import { callback, decimal, type Fields, optional, text, whole } from "../options.ts"

/** One episode to play. */
export interface OpenEnvTask {
  /** A whole number, which the server's environment is reset with. */
  readonly seed: number
}

/** What the server said of a moment. */
export interface OpenEnvMoment {
  /** The environment's own observation object. */
  readonly observation: unknown
  readonly reward: number
  readonly done: boolean
}

export interface OpenEnvOptions extends AgentOptions<OpenEnvTask> {
  /** Where the server listens: a ws, wss, http or https address; `/ws` is appended. Default "http://127.0.0.1:8000". */
  readonly url?: string
  /** Steps after which an episode is cut off; 1 to 10,000. Default 30. */
  readonly maxSteps?: number
  /**
   * Seconds for a connection to open and for each answer. Default 50: OpenEnv's own client has 60, but the training loop gives
   * each call of an environment 60 (`training.rollout.environmentTimeout`), and what is to act must lie below. For slower
   * servers raise both.
   */
  readonly messageTimeout?: number
  /**
   * Seconds to wait for a free slot, where more episodes run than the server has slots. Default 50, below the loop's limit as
   * above. Waiting is part of `start`, as connecting and resetting are: where together they take longer than
   * `training.rollout.environmentTimeout`, that ends them. So raise both, or lower `training.rollout.concurrency`, where slots
   * are scarce.
   */
  readonly capacityTimeout?: number
  /** The longest frame that is taken. Default 100 MB (100,000,000). */
  readonly maxFrameBytes?: number

  /** The observation's field that the prompt shows. By default the first of text, prompt, message, question, … that is a text. */
  readonly textField?: string | undefined
  /** The field that identifies the state. By default the text does. */
  readonly anchorField?: string | undefined
  /** The field that lists the admissible actions. By default the first of admissible, legal_actions, … that lists texts. */
  readonly actionsField?: string | undefined
  /** The action's field that takes the model's text. By default the one required field, a text, that `GET /schema` names. */
  readonly actionField?: string | undefined

  /** What a reset sends beside its type: keywords of the environment. Default `{ seed: task.seed }`. */
  readonly reset?: ((task: OpenEnvTask) => object) | undefined
  /** Reads an observation, in place of textField, anchorField and actionsField. */
  readonly observe?: ((observation: unknown) => ObservedText) | undefined
  /** Writes the action object, in place of actionField. */
  readonly act?: ((action: string) => object) | undefined
  /** Whether an episode that ended so was a success. By default whether the last reward was positive. */
  readonly success?: ((last: OpenEnvMoment) => boolean) | undefined
}

/** An observation whose anchor may be left out: the text then. */
export type ObservedText = Omit<Observation, "anchor"> & { readonly anchor?: string }

export const openEnvFields: Fields<OpenEnvOptions> = {
  ...agentFields<OpenEnvTask>(),
  url: text("http://127.0.0.1:8000"),
  maxSteps: whole(30, 1, 10_000),
  messageTimeout: decimal(50, 0.001, 86_400),
  capacityTimeout: decimal(50, 0, 86_400),
  maxFrameBytes: whole(100_000_000, 1, 1_000_000_000),
  textField: optional(text("")),
  anchorField: optional(text("")),
  actionsField: optional(text("")),
  actionField: optional(text("")),
  reset: callback<(task: OpenEnvTask) => object>(),
  observe: callback<(observation: unknown) => ObservedText>(),
  act: callback<(action: string) => object>(),
  success: callback<(last: OpenEnvMoment) => boolean>(),
}

/** With the defaults filled in. */
export type ResolvedOptions = Required<OpenEnvOptions>
