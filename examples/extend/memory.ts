// A memory: a notebook of at most so many lines. Before every action the policy is asked for one line about the result of the last action; its
// calls are steps of their own, trained on with the episode.
import { fields } from "gigpo"
import type { PromptMemory } from "gigpo/prompts"

export const options = {
  lines: fields.integer(8, "Lines that are kept.", { min: 1 }),
}

export default function notebook({ lines }: { lines: number }): PromptMemory {
  return {
    name: "notebook",
    // What an episode remembers lies in here; what a run remembers would be changed by `update` and saved by `state`.
    start({ sample }) {
      const notes: string[] = []
      return {
        async render(history, now) {
          const last = history.at(-1)
          if (last) {
            const content = `Before: ${last.observation.text}\nDone: ${last.action}\nNow: ${now.text}\nNote one line.`
            notes.push((await sample([{ role: "user", content }], { maxTokens: 32 })).split("\n")[0]!)
          }
          return notes.length > 0 ? `Your notes:\n${notes.slice(-lines).join("\n")}` : ""
        },
      }
    },
  }
}
