import type { Observation, Turn } from "../environment.ts"
import type { SokobanOptions } from "./options.ts"

type PromptOptions = Required<Pick<SokobanOptions, "history" | "rules" | "thinking">>

const rules = `You are playing Sokoban. Push every box onto a target.

Symbols: # wall, _ floor, O target, X box, √ box on a target, P you, S you on a target.
Each action moves you one cell up, down, left or right. Walls stop you. Walking into a box pushes it one cell further \
if the cell behind it is free; otherwise nothing moves. You cannot pull a box or push two at once. The puzzle is \
solved when every box stands on a target.`

const replyFormats = {
  optional: "You may think first inside <think> </think>. Then give",
  required: "First think about the next action inside <think> </think>. Then give",
  off: "Give",
} as const

/** What the model reads: one message, with the last steps as they were seen and acted on. */
export function promptText(history: readonly Turn[], now: Observation, options: PromptOptions): string {
  const skipped = Math.max(history.length - options.history, 0)
  const recent = history.slice(skipped)
  if (!options.rules) {
    return [...recent.map((turn) => `${turn.observation.text}\n${turn.action}`), now.text].join("\n\n")
  }
  return [
    rules,
    ...recent.map((turn, i) => `Step ${skipped + i + 1}:\n${turn.observation.text}\nYour action: ${turn.action}`),
    `Step ${history.length + 1}, now:\n${now.text}`,
    `${replyFormats[options.thinking]} one action (up, down, left or right) inside <action> </action>.`,
  ].join("\n\n")
}
