import { Unsupported } from "./fields.ts"

// Limits of tokenizer.json, which may come from strangers. Published tokenizers stay far below them.

/** Normalizers, pre-tokenizers or decoders. */
const mostSteps = 16
/** UTF-16 units that all normalizers, or all decoders, together make of one. */
const mostGrowth = 64
/** UTF-16 units of an added token. */
export const longestAdded = 512
export const mostAdded = 2 ** 17

/** @throws Unsupported where there are too many steps */
export function atMostSteps<T>(steps: T[], name: string): T[] {
  if (steps.length <= mostSteps) return steps
  throw new Unsupported(`has ${steps.length} ${name} in a row; at most ${mostSteps} are supported`)
}

/** @throws Unsupported where all steps together make too much of a text */
export function checkGrowth(steps: readonly { readonly growth: number }[], name: string): void {
  const growth = steps.reduce((product, step) => product * step.growth, 1)
  if (growth > mostGrowth)
    throw new Unsupported(
      `has ${name} that make up to ${growth} characters of one; at most ${mostGrowth} are supported`,
    )
}
