/** One entry of an object's JSON: its name, its value, and whether that is short. */
const entry = /[{,]"([^"\\]{1,32})":(?:"([^"\\]{0,40})"|(-?[\w.+-]{1,24})|"(?:[^"\\]|\\.)*")(?=[,}])/y

/**
 * What a task is called where there is little room, of its JSON, which may be cut: a text as it is; of an object its short values by their
 * names, since what tells tasks apart is seldom the drawing of a room. Not safe to show.
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
