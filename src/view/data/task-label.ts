/** Pattern of an entry of an object's JSON, with groups for its name and a short value. */
const entry = /[{,]"([^"\\]{1,32})":(?:"([^"\\]{0,40})"|(-?[\w.+-]{1,24})|"(?:[^"\\]|\\.)*")(?=[,}])/y

/**
 * Short label of a task from its JSON, which may be truncated: a string as is; for an object, its short values with their names, because long
 * values seldom distinguish tasks. Must be escaped before display.
 */
export function taskLabel(json: string): string {
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
