/** Patterns of text that differs between two observations of one state, with replacements. */
const noise: readonly (readonly [pattern: RegExp, name: string])[] = [
  // ISO 8601 with seconds at least: a date or a time of day alone may be part of a task.
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z\b|[+-]\d\d:?\d\d\b))?/g, "<time>"],
  [/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi, "<uuid>"],
  // Ids of calls, responses and messages as model APIs generate them: too long and mixed for a word.
  [/\b(?:call|chatcmpl|resp|msg|fc|toolu)[_-](?=[a-z]*\d)[\da-z]{16,}\b/gi, "<id>"],
]

/**
 * Returns a text without times (ISO 8601 with seconds), UUIDs and ids of calls, replaced by `<time>`, `<uuid>` and
 * `<id>`. Use it as `train({ agent, normalize: stripVolatileText })` if tools return such text and anchor states would
 * never be equal. Do not use it if tasks depend on them: states that differ in nothing else are compared as one.
 */
export function stripVolatileText(text: string): string {
  return noise.reduce((rest, [pattern, name]) => rest.replaceAll(pattern, name), text)
}
