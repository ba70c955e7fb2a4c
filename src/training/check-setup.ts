import type { Teacher, Trainable } from "../engine/engine.ts"
import { checkMethods } from "../rollout/check-setup.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import type { RunObserver } from "./observers.ts"

// Checks of arguments before training starts. Messages name the missing method or value.

const engineMethods = ["sample", "logProbs", "forwardBackward", "optimizerStep", "clearGradients", "check"] as const
const codecMethods = ["encodeChat", "encode", "decode"] as const

/** Checks the methods of a policy and a tokenizer. */
export function checkModel(name: string, policy: Trainable, tokenizer: ChatCodec): void {
  if (!policy || !tokenizer) throw bad(`${name} needs a policy and a tokenizer.`)
  checkEngine("policy", policy)
  checkMethods("tokenizer", tokenizer, codecMethods)
  tokenizer.checkVocabulary?.(policy.vocabularySize)
}

/** Checks the methods and losses of an engine. */
export function checkEngine(name: string, engine: Trainable): void {
  checkMethods(name, engine, engineMethods)
  if (!Array.isArray(engine.losses))
    throw bad(`losses of the ${name} must be a list: the built-in losses that the engine computes in a kernel, or [].`)
}

/** Checks that there is a teacher if `name` needs one, and that teacher and policy have the same vocabulary. */
export function checkTeacher(
  teacher: Teacher | undefined,
  tokenizer: ChatCodec,
  needs: ReadonlySet<string>,
  name: string,
): void {
  if (teacher !== undefined) {
    checkMethods("teacher", teacher, ["logProbs"])
    tokenizer.checkVocabulary?.(teacher.vocabularySize)
  } else if (needs.has("teacher"))
    throw bad(`${name} needs a teacher: give one (a policy as \`teacher\`, or the key teacher of the configuration).`)
}

/** Checks that observers are a list of objects with at least one method of `RunObserver`. */
export function checkObservers(observers: readonly RunObserver[] | undefined): void {
  if (observers === undefined) return
  if (!Array.isArray(observers)) throw bad("observers must be a list of observers.")
  for (const [index, observer] of observers.entries()) {
    const events = ["start", "episodes", "report", "end"] as const
    const has = events.some((event) => typeof observer?.[event] === "function")
    if (!has) throw bad(`observers[${index}] must be an object with one or more of ${events.join(", ")}.`)
  }
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
