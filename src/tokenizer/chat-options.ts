import { field } from "../options/field.ts"
import { isObject } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { parseMoment } from "./jinja/strftime.ts"

type Variables = Readonly<Record<string, unknown>>

/** Option fields of the chat template. */
export const chatFields = {
  variables: field<Variables | undefined, string>(
    undefined,
    "Variables of the chat template, e.g. enable_thinking: false.",
    (value) => (isObject(value) ? reservedName(value) : "must be an object"),
    { defaultText: "the template's own defaults" },
  ),
  now: field<string | undefined, string>(
    undefined,
    "Date for the chat template (strftime_now), as 2026-11-25 or 2026-11-25T14:20:04.",
    (value) =>
      typeof value === "string" && parseMoment(value) !== undefined
        ? undefined
        : 'must be a date such as "2026-11-25", or a local time such as "2026-11-25T14:20:04"',
    { defaultText: "the start time of the run" },
  ),
}

/** Options of chat templates: variables and the date. */
export type ChatOptions = OptionsOf<typeof chatFields>

/** Arguments of transformers' apply_chat_template, which cannot be variables. */
const reserved = [
  ...["messages", "conversation", "tools", "add_generation_prompt", "continue_final_message", "chat_template"],
  ...["tokenize", "return_tensors", "return_dict", "return_assistant_tokens_mask", "strftime_now", "raise_exception"],
]

/** Problem with the names of variables, as the end of a sentence; undefined if there is none. */
export function reservedName(variables: object): string | undefined {
  const name = reserved.find((one) => Object.hasOwn(variables, one))
  return name === undefined ? undefined : `must not contain ${name}, which is reserved: omit it`
}

/** First of the names that the template never reads. */
export function unreadVariable(variables: object, source: string): string | undefined {
  const words = new Set(source.match(/[A-Za-z_]\w*/g))
  return Object.keys(variables).find((name) => !words.has(name))
}

/** @throws GigpoError `BAD_ARGUMENT` if the template never reads a variable */
export function checkVariables(variables: object, source: string): void {
  const unread = unreadVariable(variables, source)
  if (unread === undefined) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `chat.variables.${unread} would do nothing: the model's chat template does not read ${unread}. Leave it out, or check its spelling.`,
  )
}
