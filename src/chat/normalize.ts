/** What two sights of one state differ in that were taken at different times, and what stands for it. */
const noise: readonly (readonly [pattern: RegExp, name: string])[] = [
  // ISO 8601, down to the second at least: a date or a time of day alone may well be what a task is about.
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z\b|[+-]\d\d:?\d\d\b))?/g, "<time>"],
  [/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi, "<uuid>"],
  // Ids as APIs of models make them up for a call, an answer, a message: too long and mixed to be a word.
  [/\b(?:call|chatcmpl|resp|msg|fc|toolu)[_-](?=[a-z]*\d)[\da-z]{16,}\b/gi, "<id>"],
]

/**
 * A text without times (ISO 8601 to the second), UUIDs and ids of calls: for `train({ agent, normalize: stripVolatileText })`, where tools
 * answer with these and no two answers would be equal. Not where they are what the task is about: states that differ in nothing else
 * would be compared as one.
 */
export function stripVolatileText(text: string): string {
  return noise.reduce((rest, [pattern, name]) => rest.replaceAll(pattern, name), text)
}
