import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Memory } from "./memory.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const beliefFields = { longest: longestNote }

/** Options of `beliefs`. */
export type BeliefOptions = OptionsOf<typeof beliefFields>

/**
 * Beliefs that are estimated, verified and updated in words, after EVU, which is against the inertia of beliefs: agents hold on to
 * what they thought although what they observe speaks against it. Its prompts are not defined in public. Our reading: with every
 * action the policy says what it believes (`<belief>`) and what it expects of the action (`<expect>`); the next prompt shows both
 * beside what came of it and asks to compare them first.
 */
export function beliefs(given: BeliefOptions = {}): Memory {
  const { longest } = readOptions("beliefs", given, beliefFields)
  return {
    name: "beliefs",
    begin: () => ({
      tell(history) {
        const last = history.slice(-1) // an expectation is of the action beside it, and of no later one
        return [
          ...titled("You believed:", lastNote(history, "belief", longest)),
          ...titled(`You expected of your last action (${last[0]?.action}):`, lastNote(last, "expect", longest)),
          ...(last.length > 0 ? ["Compare both with what you observe now, and give up what it speaks against."] : []),
          "Beside your action, write inside <belief> </belief> what you believe of the world now, and inside <expect> </expect> " +
            "what you expect to observe after the action.",
        ].join("\n\n")
      },
    }),
  }
}
