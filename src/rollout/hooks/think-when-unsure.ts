import { number, string } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { RolloutHooks } from "../hooks.ts"
import { entropyOf } from "./entropy-of.ts"

/** Options of `thinkWhenUnsure`. */
export const thinkWhenUnsureFields = {
  threshold: number(0.5, "Mean entropy of a reply, in nats a token, above which it is sampled again with a thought.", {
    min: 0,
  }),
  brief: string("Answer at once, without a thought.", "Added to the prompt of the first reply."),
  think: string("Think step by step before you answer.", "Added instead to the prompt of the second."),
}

/** Options of `thinkWhenUnsure`. */
export type ThinkWhenUnsureOptions = OptionsOf<typeof thinkWhenUnsureFields>

/**
 * Thinks only where it is unsure (after HiRO-Nav, of which no numbers are published): a first reply without a thought is acted on where its
 * mean entropy is low; where it is high, another is sampled by a prompt that asks to think. That the first reply's own entropy decides,
 * and that hints ask for thoughts, are our reading. What is learned from is the reply that was acted on, with its prompt.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning, or an engine that tells no entropies
 */
export function thinkWhenUnsure(options: ThinkWhenUnsureOptions = {}): Pick<RolloutHooks, "begin" | "onTurn"> {
  const { threshold, brief, think } = readOptions("thinkWhenUnsure", options, thinkWhenUnsureFields)
  return {
    begin: () => ({ hint: brief }),
    onTurn: ({ attempt, completion }) =>
      attempt === 0 && entropyOf("thinkWhenUnsure", completion) > threshold
        ? { kind: "resample", hint: think }
        : { kind: "accept" },
  }
}
