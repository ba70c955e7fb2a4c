import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { boolean, callback, choice, oneOf, optionalChoice } from "../options/field.ts"
import { fieldsOf, makeNamed } from "../options/named.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import type { Environment, ParsedAction, Turn } from "./environment.ts"
import { memories } from "./memory/memories.ts"
import { customMemory, type HistoryFormatter, type Memory } from "./memory/memory.ts"
import { formatTurns, historyField, recentTurns } from "./memory/recent.ts"
import { strip } from "./python-text.ts"

export { historyField } from "./memory/recent.ts"

const thinkings = ["optional", "required", "off"] as const

export type Thinking = (typeof thinkings)[number]

/** How a text agent is spoken to: the options that the environments share. Each part can be replaced by a function. */
export function agentFields<Task>() {
  return {
    history: historyField(2),
    thinking: thinkingField("required"),
    rules: boolean(
      true,
      "Whether the prompt explains role, rules and reply format. Without them it is as bare as can be: for small models " +
        "trained from scratch.",
    ),
    memory: optionalChoice(
      choice(undefined, fieldsOf(memories), "What prompts tell of the past, in place of the last `history` steps.", {
        own: customMemory,
      }),
      "the last `history` steps, as the environment writes them",
    ),
    prompt: callback(undefined as Environment<Task>["prompt"] | undefined, "Writes the whole prompt."),
    parse: callback(undefined as Environment<Task>["parse"] | undefined, "Reads the reply."),
  }
}

/** How an environment words its prompts and reads actions. */
export type PromptOptions<Task = unknown> = OptionsOf<ReturnType<typeof agentFields<Task>>>

export function thinkingField(fallback: Thinking) {
  return oneOf<Thinking, Thinking, string>(
    fallback,
    thinkings,
    "Whether replies think in `<think>` tags before they act: the prompt demands it (replies without `</think>` are invalid, " +
      "though still acted on), offers it or does not speak of it.",
  )
}

/** Options of an environment as its prompts read them. */
export type Speech<Settings> = Omit<Settings, "memory"> & { readonly memory?: HistoryFormatter | undefined }

/**
 * How an environment's prompts tell the past. A function writes it where the environment's own lines would stand; a memory writes it
 * before the prompt, which the player sees to, and the environment's own lines are left out.
 *
 * @param least - past steps that prompts show beside a memory too, where one step says what another began.
 */
export function recall<
  Settings extends { readonly history: number | "all"; readonly memory?: ResolvedMemory | undefined },
>(
  settings: Settings,
  least = 0,
): { readonly speech: Speech<Settings>; readonly remembers: { readonly memory?: Memory } } {
  const { memory: chosen, ...rest } = settings
  const memory = chosen && openMemory(chosen)
  if (memory === undefined || typeof memory === "function") return { speech: { ...rest, memory }, remembers: {} }
  return { speech: { ...rest, history: least }, remembers: { memory } }
}

type ResolvedMemory = NonNullable<Resolved<ReturnType<typeof agentFields>>["memory"]>

function openMemory(chosen: ResolvedMemory): Memory | HistoryFormatter {
  if ("use" in chosen) return chosen.use
  return makeNamed<Memory>(memories, chosen)
}

/** What the prompt tells of the past: `memory`'s text, or the last `history` steps; "" where there is nothing to tell. */
export function rememberTurns(
  turns: readonly Turn[],
  options: { readonly history: number | "all"; readonly memory?: HistoryFormatter | undefined },
): string {
  checkArguments("rememberTurns", options)
  const { history, memory } = options
  return memory ? memory(turns) : formatTurns(recentTurns(turns, history))
}

/** The sentences that ask for the reply's form. `what` is what belongs into the action tags, e.g. "one of the actions". */
export function replyFormat(thinking: Thinking, what: string): string {
  return `${thoughts[thinking]} ${what} inside <action> </action>.`
}

const thoughts: Readonly<Record<Thinking, string>> = {
  required: "First think about the next action inside <think> </think>. Then give",
  optional: "You may think first inside <think> </think>. Then give",
  off: "Give",
}

/**
 * Whether a reply holds a thought, as "required" demands it. verl-agent looks for both `<think>` and `</think>`, wherever they
 * stand. Here `</think>` is enough, because chat templates such as those of Qwen3-Thinking and DeepSeek-R1 open the thought in
 * the prompt: every reply that is valid there is valid here, and such replies are too.
 */
export function hasThought(reply: string): boolean {
  return reply.includes("</think>")
}

export interface ActionForm {
  /** How many characters of an unreadable reply are tried. */
  readonly tail: number
  readonly thinking: Thinking
  /** Leaves the action in the case it is written in, for worlds to which case matters. Default false. */
  readonly keepCase?: boolean
}

const formKeys: KeysOf<ActionForm> = { tail: true, thinking: true, keepCase: true }

/**
 * Reads an action as verl-agent does (agent_system/environments/env_package/alfworld/projection.py): the lower-cased text
 * between the first `<action>` and the first `</action>`, without the white space that Python strips. Without such a pair the last characters of the reply are tried,
 * and the reply is invalid; so it is where a Chinese, Japanese or Korean ideograph (U+4E00 to U+9FFF) occurs, and, where
 * thinking is required, without a thought (`hasThought`). Whether the action makes sense is not asked. Never throws, whatever the reply.
 */
export function readAction(reply: string, form: ActionForm): ParsedAction {
  checkArguments("readAction", form, formKeys)
  const { tail, thinking, keepCase = false } = form
  const inCase = (text: string) => (keepCase ? text : text.toLowerCase())
  const start = reply.search(/<action>/i)
  const end = reply.search(/<\/action>/i)
  if (start < 0 || end < 0) return { action: lastCharacters(inCase(reply), tail), valid: false }
  // An end before its start leaves nothing between them, and Python's slice says so too.
  const action = strip(inCase(reply.slice(start + "<action>".length, end)))
  const thought = thinking !== "required" || hasThought(reply)
  return { action, valid: thought && !/[\u4e00-\u9fff]/.test(reply) }
}

/** The last characters as Python counts them, by code points. */
function lastCharacters(text: string, count: number): string {
  return Array.from(text.slice(-2 * count - 1))
    .slice(-count)
    .join("")
}
