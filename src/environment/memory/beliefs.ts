import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { PromptMemory } from "./memory.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const beliefFields = { maxCharacters: longestNote }

/** Options of `beliefMemory`. */
export type BeliefOptions = OptionsOf<typeof beliefFields>

/**
 * Prompt memory of beliefs that the policy estimates, verifies and updates in text, after EVU. EVU addresses belief inertia: agents keep
 * beliefs that contradict their observations. Its prompts are not published. Our interpretation: with every action the policy writes its
 * beliefs (`<belief>`) and what it expects of the action (`<expect>`). The next prompt shows both and asks to compare them with the
 * observation.
 */
export function beliefMemory(given: BeliefOptions = {}): PromptMemory {
  const { maxCharacters } = readOptions("beliefMemory", given, beliefFields)
  return {
    name: "beliefs",
    notes: true,
    start: () => ({
      render(history) {
        const last = history.slice(-1) // an expectation applies only to the action of the same completion
        return [
          ...titled("You believed:", lastNote(history, "belief", maxCharacters)),
          ...titled(`You expected of your last action (${last[0]?.action}):`, lastNote(last, "expect", maxCharacters)),
          ...(last.length > 0 ? ["Compare both with what you observe now, and give up what it speaks against."] : []),
          "Beside your action, write inside <belief> </belief> what you believe of the world now, and inside <expect> </expect> " +
            "what you expect to observe after the action.",
        ].join("\n\n")
      },
    }),
  }
}
