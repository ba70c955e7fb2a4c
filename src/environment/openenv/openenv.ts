import { GigpoError } from "../../util/errors.ts"
import type { Random } from "../../util/random.ts"
import {
  completionFormat,
  type PromptSettings,
  readAction,
  rememberTurns,
  settleMemory,
  type Thinking,
} from "../agent.ts"
import type { Environment, Observation, ParsedAction, PastStep } from "../environment.ts"
import { readOptions } from "../options.ts"
import { taskSeeds } from "../seeds.ts"
import { findActionField } from "./action-field.ts"
import { playSession } from "./episode.ts"
import { type OpenEnvOptions, type OpenEnvTask, openEnvFields, type ResolvedOptions } from "./options.ts"
import { serverAddress } from "./server-address.ts"
import { openSession } from "./session.ts"

/**
 * Environment behind an OpenEnv server (https://github.com/meta-pytorch/OpenEnv). Each episode opens a WebSocket and resets the server's
 * environment with the seed of the task. Episodes wait if the server has no free slot. Group-relative advantages require that the
 * server's environment is a pure function of seed and actions; `checkEnvironment` tests this.
 *
 * - A reward of null counts as 0. The episode ends when the server reports done, or after `maxSteps` steps.
 * - If the server rejects an action (VALIDATION_ERROR of its content, EXECUTION_ERROR), the reward is 0 and the observation is unchanged
 *   except for the appended reason. The metric `rejected-actions` counts these steps.
 * - All other errors fail the episode with ENVIRONMENT_FAILED or ENVIRONMENT_TIMEOUT: a VALIDATION_ERROR of an action's fields, a closed
 *   connection, a missing response, a frame outside the protocol.
 * - Environments with MCP tools need `act` to write the calls, e.g.
 *   `(action) => ({ type: "call_tool", tool_name: "search", arguments: { query: action } })`. Without `act` they are rejected, because
 *   their actions have no single text field. Tools are not listed in the prompt.
 *
 * Metrics: `success`, `rejected-actions`.
 *
 * @throws BAD_CONFIG for unknown or invalid options; the server is first contacted by `start`
 */
export function openenv(options: OpenEnvOptions = {}): Environment<OpenEnvTask> {
  const resolved: ResolvedOptions = readOptions("openenv", options, openEnvFields)
  const { speech, remembers } = settleMemory(resolved)
  const address = serverAddress(resolved.url, resolved.plainHttp)
  let found: Promise<string> | undefined
  /** Requested once for all episodes, and again after a failure. */
  const foundActionField = (): Promise<string> => {
    found ??= findActionField(address, resolved.messageTimeout).catch((error: unknown) => {
      found = undefined
      throw error
    })
    return found
  }
  const writer = async (signal: AbortSignal): Promise<(action: string) => object> => {
    if (resolved.act) return resolved.act
    const field = resolved.actionField ?? (await unlessAborted(foundActionField(), signal))
    return (action) => ({ [field]: action })
  }

  return {
    name: "openenv",
    ...remembers,
    tasks: (split, random) => openEnvTasks(split, random),
    async start(task, { signal }) {
      signal.throwIfAborted()
      checkTask(task)
      const act = await writer(signal)
      const reset = resolved.reset?.(task) ?? { seed: task.seed }
      const { connection, first } = await openSession(address, reset, resolved, signal)
      try {
        if (first.done)
          throw new GigpoError("ENVIRONMENT_FAILED", `openenv: ${address.name} reported done right after a reset.`)
        return playSession({ address, connection, first, act, options: resolved, signal })
      } catch (error) {
        await connection.close()
        throw error
      }
    },
    prompt: resolved.prompt ?? ((_task, history, now) => [{ role: "user", content: promptText(history, now, speech) }]),
    parse: resolved.parse ?? ((completion, now) => parseAction(completion, now, resolved.thinking)),
  }
}

function* openEnvTasks(split: "train" | "test", random: Random): Generator<OpenEnvTask, void, undefined> {
  for (const seed of taskSeeds(split, random, "openenv seeds")) yield { seed }
}

function checkTask(task: Partial<OpenEnvTask> | null | undefined): void {
  if (!Number.isInteger(task?.seed))
    throw new GigpoError("BAD_ARGUMENT", "An OpenEnv task must be an object with an integer as its seed.")
}

/** Parses an action. Some servers are case-sensitive: the case is that of the server's list, or else that of the completion. */
function parseAction(completion: string, now: Observation, thinking: Thinking): ParsedAction {
  const { action, valid } = readAction(completion, { tail: 30, thinking, keepCase: true })
  const known = now.actions?.filter((one) => one.toLowerCase() === action.toLowerCase()) ?? []
  return { action: known.length === 1 ? known[0]! : action, valid }
}

function promptText(history: readonly PastStep[], now: Observation, options: PromptSettings<ResolvedOptions>): string {
  const past = rememberTurns(history, options)
  const actions = now.actions ? `Possible actions:\n${now.actions.join("\n")}` : ""
  const what = now.actions ? "one of the possible actions" : "the text of your next action"
  const parts = options.rules
    ? [
        "You act in an environment, one step at a time, to reach the goal that it sets.",
        past,
        `Step ${history.length + 1}, now:\n${now.text}`,
        actions,
        completionFormat(options.thinking, what),
      ]
    : [past, now.text, actions]
  return parts.filter((part) => part !== "").join("\n\n")
}

/** Waits for `promise`; rejects with the signal's reason if that is aborted first. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    signal.addEventListener("abort", abort, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener("abort", abort)
  }
}
