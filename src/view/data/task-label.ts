/** Keys of a task whose text names it, by precedence. */
const naming = ["question", "problem", "instruction", "goal", "query", "prompt", "title"]
const named = naming.map((key) => new RegExp(`[{,]"${key}":"((?:[^"\\\\]|\\\\.)+)`))
/** Pattern of an entry of an object's JSON, with groups for its name and a short value. */
const entry = /[{,]"([^"\\]{1,32})":(?:"([^"\\]{0,40})"|(-?[\w.+-]{1,24})|"(?:[^"\\]|\\.)*")(?=[,}])/y

/**
 * Short label of a task from its JSON, which may be truncated: a string as is; for an object its question, or else its short values with
 * their names, because other long values seldom distinguish tasks. Must be escaped before display.
 */
export function taskLabel(json: string): string {
  for (const pattern of named) {
    const text = pattern.exec(json)?.[1]
    if (text !== undefined) return unescaped(text)
  }
  const words: string[] = []
  let end = 0
  entry.lastIndex = 0
  for (let found = entry.exec(json); found; found = entry.exec(json)) {
    const value = found[2] ?? found[3]
    if (value !== undefined) words.push(`${found[1]} ${value}`)
    end = entry.lastIndex
  }
  if (words.length > 0) return words.join(" · ")
  return end === 0 && /^"[^"\\]*"$/.test(json) ? json.slice(1, -1) : json
}

/** Text of a JSON string without its quotes, which may have been cut within an escape. */
function unescaped(text: string): string {
  const whole = text.replace(/\\(u[\da-f]{0,3})?$/i, "")
  try {
    return JSON.parse(`"${whole}"`)
  } catch {
    return whole
  }
}

/** Task with its question first, so that the question is in the beginning of its JSON. */
export function questionFirst(task: unknown): unknown {
  if (typeof task !== "object" || task === null || Array.isArray(task)) return task
  const key = naming.find((name) => typeof (task as Record<string, unknown>)[name] === "string")
  return key === undefined ? task : { [key]: (task as Record<string, unknown>)[key], ...task }
}
