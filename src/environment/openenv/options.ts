import { boolean, callback, integer, number, string } from "../../options/field.ts"
import type { OptionsOf, Resolved } from "../../options/table.ts"
import { agentFields } from "../agent.ts"
import type { Observation } from "../environment.ts"

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

/** An observation whose anchor may be left out: the text then. */
export type ObservedText = Omit<Observation, "anchor"> & { readonly anchor?: string }

export const openEnvFields = {
  ...agentFields<OpenEnvTask>(),
  url: string(
    "http://127.0.0.1:8000",
    "Where the server listens: a ws, wss, http or https address; `/ws` is appended.",
  ),
  plainHttp: boolean(
    false,
    "Send user name and password of `url` to another machine also over ws or http, which are not encrypted: only in a network that you trust.",
  ),
  maxSteps: integer(30, "Steps after which an episode is cut off; 1 to 10,000.", { min: 1, max: 10_000 }),
  messageTimeout: number(
    50,
    "Seconds for a connection to open and for each answer. OpenEnv's own client has 60, but the training loop gives each call " +
      "of an environment 60 (`training.rollout.environmentTimeout`), and what is to act must lie below. For slower servers " +
      "raise both.",
    { min: 0.001, max: 86_400 },
  ),
  capacityTimeout: number(
    50,
    "Seconds to wait for a free slot, where more episodes run than the server has slots. Waiting is part of `start`, as " +
      "connecting and resetting are: where together they take longer than `training.rollout.environmentTimeout`, that ends " +
      "them. So raise both, or lower `training.rollout.concurrency`, where slots are scarce.",
    { min: 0, max: 86_400 },
  ),
  maxFrameBytes: integer(100_000_000, "The longest frame that is taken.", { min: 1, max: 1_000_000_000 }),

  textField: string(undefined, "The observation's field that the prompt shows.", {
    defaultText: "the first of text, prompt, message, question, … that is a text",
  }),
  anchorField: string(undefined, "The field that identifies the state.", { defaultText: "the text does" }),
  actionsField: string(undefined, "The field that lists the admissible actions.", {
    defaultText: "the first of admissible, legal_actions, … that lists texts",
  }),
  actionField: string(undefined, "The action's field that takes the model's text.", {
    defaultText: "the one required field, a text, that `GET /schema` names",
  }),

  reset: callback(
    undefined as ((task: OpenEnvTask) => object) | undefined,
    "What a reset sends beside its type: keywords of the environment.",
    { defaultText: "{ seed: task.seed }" },
  ),
  observe: callback(
    undefined as ((observation: unknown) => ObservedText) | undefined,
    "Reads an observation, in place of textField, anchorField and actionsField.",
  ),
  act: callback(
    undefined as ((action: string) => object) | undefined,
    "Writes the action object, in place of actionField.",
  ),
  success: callback(
    undefined as ((last: OpenEnvMoment) => boolean) | undefined,
    "Whether an episode that ended so was a success.",
    { defaultText: "whether the last reward was positive" },
  ),
}

/** Options of `openEnv`. */
export type OpenEnvOptions = OptionsOf<typeof openEnvFields>

/** With the defaults filled in. */
export type ResolvedOptions = Resolved<typeof openEnvFields>
