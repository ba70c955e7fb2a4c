import { Unsupported } from "./fields.ts"

// Limits of tokenizer.json, which may be untrusted. Published tokenizers are far below the limits.

/** Maximum number of normalizers, pre-tokenizers or decoders. */
const mostSteps = 16
/** Maximum growth of a text by all normalizers, or all decoders, in UTF-16 units of output per unit of input. */
const mostGrowth = 64
/** Maximum length of an added token in UTF-16 units. */
export const longestAdded = 512
export const mostAdded = 2 ** 17

/** Checks the number of steps. Throws Unsupported. */
export function atMostSteps<T>(steps: T[], name: string): T[] {
  if (steps.length <= mostSteps) return steps
  throw new Unsupported(`has ${steps.length} ${name} in a row; at most ${mostSteps} are supported`)
}

/** Checks the combined growth of a text by all steps. Throws Unsupported. */
export function checkGrowth(steps: readonly { readonly growth: number }[], name: string): void {
  const growth = steps.reduce((product, step) => product * step.growth, 1)
  if (growth > mostGrowth)
    throw new Unsupported(
      `has ${name} that make up to ${growth} characters of one; at most ${mostGrowth} are supported`,
    )
}
