import { boolean, callback, integer, number, string } from "../../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../../options/table.ts"
import { agentFields } from "../agent.ts"
import type { Observation } from "../environment.ts"

/** Task of an OpenEnv environment. */
export interface OpenEnvTask {
  /** Integer that the server's environment is reset with. */
  readonly seed: number
}

/** Last response of the server in an episode. */
export interface OpenEnvResponse {
  /** Observation object of the server's environment. */
  readonly observation: unknown
  /** Reward of the step; 0 after a reset. */
  readonly reward: number
  /** Whether the episode has ended. */
  readonly done: boolean
}

/** Observation with an optional `anchor`. Default of the anchor: the text. */
export type ObservedText = Omit<Observation, "anchor"> & { readonly anchor?: string }

export const openEnvFields = {
  ...agentFields<OpenEnvTask>(),
  url: string("http://127.0.0.1:8000", "Address of the server: ws, wss, http or https; `/ws` is appended."),
  plainHttp: boolean(
    false,
    "Allow user name and password of `url` to be sent to another machine over ws or http, which are not encrypted. Only for trusted networks.",
  ),
  maxSteps: integer(30, "Maximum number of steps of an episode; 1 to 10,000.", { min: 1, max: 10_000 }),
  messageTimeout: number(
    50,
    "Seconds for a connection to open and for each response. Must be below `training.rollout.environmentTimeout` (60 s by default), " +
      "the limit of each call of an environment, to take effect. For slower servers increase both. OpenEnv's own client uses 60 s.",
    { min: 0.001, max: 86_400 },
  ),
  capacityTimeout: number(
    50,
    "Seconds to wait for a free slot if more episodes run than the server has slots. Waiting, connecting and resetting are parts of " +
      "`start`, which together may take `training.rollout.environmentTimeout`. If slots are scarce, increase both timeouts or decrease " +
      "`training.rollout.concurrency`.",
    { min: 0, max: 86_400 },
  ),
  maxFrameBytes: integer(100_000_000, "Maximum size of a received frame in bytes.", { min: 1, max: 1_000_000_000 }),

  textField: string(undefined, "Field of the observation that the prompt shows.", {
    defaultText: "the first of text, prompt, message, question, … that is a string",
  }),
  anchorField: string(undefined, "Field of the observation that is the anchor state.", { defaultText: "the text" }),
  actionsField: string(undefined, "Field of the observation that lists the admissible actions.", {
    defaultText: "the first of admissible, legal_actions, … that is a list of strings",
  }),
  actionField: string(undefined, "Field of the action that takes the model's text.", {
    defaultText: "the only required field in `GET /schema`, a string",
  }),

  reset: callback(
    undefined as ((task: OpenEnvTask) => object) | undefined,
    "Function that returns the keyword arguments of a reset.",
    { defaultText: "{ seed: task.seed }" },
  ),
  observe: callback(
    undefined as ((observation: unknown) => ObservedText) | undefined,
    "Function that converts an observation, in place of textField, anchorField and actionsField.",
  ),
  act: callback(
    undefined as ((action: string) => object) | undefined,
    "Function that writes the action object, in place of actionField.",
  ),
  success: callback(
    undefined as ((last: OpenEnvResponse) => boolean) | undefined,
    "Function that decides from the last response whether an episode was successful.",
    { defaultText: "whether the last reward was positive" },
  ),
}

/** Options of `openenv`. */
export type OpenEnvOptions = OptionsOf<typeof openEnvFields>

/** Options of `openenv` with defaults. */
export type ResolvedOptions = ResolvedOf<typeof openEnvFields>
