import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { boolean, callback, choice, oneOf, optionalChoice } from "../options/field.ts"
import { fieldsOf, makeNamed } from "../options/named.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import type { Environment, ParsedAction, PastStep } from "./environment.ts"
import { memories } from "./memory/memories.ts"
import { customMemory, type HistoryFormatter, type PromptMemory } from "./memory/memory.ts"
import { formatTurns, historyField, recentTurns } from "./memory/recent.ts"
import { strip } from "./python-text.ts"

export { historyField } from "./memory/recent.ts"

const thinkings = ["optional", "required", "off"] as const

/** Whether prompts require, offer or omit `<think>` tags. */
export type Thinking = (typeof thinkings)[number]

/** Prompt and parsing options that the environments share. */
export function agentFields<Task>() {
  return {
    history: historyField(2),
    thinking: thinkingField("required"),
    rules: boolean(
      true,
      "Whether the prompt explains role, rules and completion format. `false` gives the shortest prompt, for small models " +
        "trained from scratch.",
    ),
    memory: optionalChoice(
      choice(undefined, fieldsOf(memories), "Prompt memory that replaces the last `history` steps.", {
        own: customMemory,
      }),
      "the last `history` steps, as the environment writes them",
    ),
    prompt: callback(undefined as Environment<Task>["prompt"] | undefined, "Function that writes the whole prompt."),
    parse: callback(
      undefined as Environment<Task>["parse"] | undefined,
      "Function that parses a completion into an action.",
    ),
  }
}

/** Prompt and parsing options that the environments share. */
export type PromptOptions<Task = unknown> = OptionsOf<ReturnType<typeof agentFields<Task>>>

export function thinkingField(fallback: Thinking) {
  return oneOf<Thinking, Thinking, string>(
    fallback,
    thinkings,
    'Reasoning in `<think>` tags before the action. "required": the prompt asks for it, and a completion without `</think>` is ' +
      'invalid but still executed. "optional": the prompt offers it. "off": the prompt does not mention it.',
  )
}

/** Options of an environment with `memory` resolved to a function, as prompt writers take them. */
export type PromptSettings<Settings> = Omit<Settings, "memory"> & { readonly memory?: HistoryFormatter | undefined }

/**
 * Resolves the `memory` option of an environment. A function replaces the environment's own history lines in the prompt (`speech`).
 * A memory object goes into `remembers`: the rollout puts its text before the prompt, and the environment's own history is dropped.
 *
 * @param least - past steps that prompts show even with a memory object, for environments in which steps depend on each other
 */
export function settleMemory<
  Settings extends { readonly history: number | "all"; readonly memory?: ResolvedMemory | undefined },
>(
  settings: Settings,
  least = 0,
): { readonly speech: PromptSettings<Settings>; readonly remembers: { readonly memory?: PromptMemory } } {
  const { memory: chosen, ...rest } = settings
  const memory = chosen && openMemory(chosen)
  if (memory === undefined || typeof memory === "function") return { speech: { ...rest, memory }, remembers: {} }
  return { speech: { ...rest, history: least }, remembers: { memory } }
}

type ResolvedMemory = NonNullable<ResolvedOf<ReturnType<typeof agentFields>>["memory"]>

function openMemory(chosen: ResolvedMemory): PromptMemory | HistoryFormatter {
  if ("use" in chosen) return chosen.use
  return makeNamed<PromptMemory>(memories, chosen)
}

/**
 * Text about past steps for the prompt: the text of `memory`, or else the last `history` steps ("all": every step), one line each. Empty if there are none.
 */
export function rememberTurns(
  turns: readonly PastStep[],
  options: { readonly history: number | "all"; readonly memory?: HistoryFormatter | undefined },
): string {
  checkArguments("rememberTurns", options)
  const { history, memory } = options
  return memory ? memory(turns) : formatTurns(recentTurns(turns, history))
}

/** Format instruction of a prompt. `what` names the content of the action tags, e.g. "one of the actions". */
export function completionFormat(thinking: Thinking, what: string): string {
  return `${thoughts[thinking]} ${what} inside <action> </action>.`
}

const thoughts: Readonly<Record<Thinking, string>> = {
  required: "First think about the next action inside <think> </think>. Then give",
  optional: "You may think first inside <think> </think>. Then give",
  off: "Give",
}

/**
 * Whether a completion contains reasoning, as `thinking: "required"` demands. verl-agent looks for both `<think>` and `</think>` at any
 * position. Here `</think>` is enough, because chat templates such as those of Qwen3-Thinking and DeepSeek-R1 write `<think>` into the
 * prompt. Every completion that is valid in verl-agent is valid here too.
 */
export function hasThought(completion: string): boolean {
  return completion.includes("</think>")
}

/** Options of `readAction`. */
export interface ActionForm {
  /** Number of characters at the end of a completion without action tags that are taken as the action. */
  readonly tail: number
  readonly thinking: Thinking
  /** Keeps the case of the action instead of lower-casing it. Default false. */
  readonly keepCase?: boolean
}

const formKeys: KeysOf<ActionForm> = { tail: true, thinking: true, keepCase: true }

/**
 * Parses an action as verl-agent does (agent_system/environments/env_package/alfworld/projection.py): the lower-cased text
 * between the first `<action>` and the first `</action>`, stripped of white space as Python defines it. Without both tags the action is
 * the last `tail` characters, and the completion is invalid. A completion is also invalid if it contains a CJK ideograph
 * (U+4E00 to U+9FFF), or if thinking is required and `</think>` is missing. The action is not checked against the environment.
 *
 * @throws BAD_ARGUMENT for invalid options; never because of the completion
 */
export function readAction(completion: string, form: ActionForm): ParsedAction {
  checkArguments("readAction", form, formKeys)
  const { tail, thinking, keepCase = false } = form
  const inCase = (text: string) => (keepCase ? text : text.toLowerCase())
  const start = completion.search(/<action>/i)
  const end = completion.search(/<\/action>/i)
  if (start < 0 || end < 0) return { action: lastCharacters(inCase(completion), tail), valid: false }
  // If `</action>` precedes `<action>`, the slice is empty, as in Python.
  const action = strip(inCase(completion.slice(start + "<action>".length, end)))
  const thought = thinking !== "required" || hasThought(completion)
  return { action, valid: thought && !/[\u4e00-\u9fff]/.test(completion) }
}

/** The last `count` code points, which are what Python counts as characters. */
function lastCharacters(text: string, count: number): string {
  return Array.from(text.slice(-2 * count - 1))
    .slice(-count)
    .join("")
}
