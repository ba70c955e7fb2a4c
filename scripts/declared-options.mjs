const entries = "OptionField|RequiredField|ScheduledField|Group|OptionalGroup|Choice|OptionalChoice"
const property = /([ \t]*)(?:export declare const |declare const |readonly )?("(?:[^"\\]|\\.)*"|[\w$]+)\??: /y
const entry = new RegExp(`(?:import\\("[^"]*"\\)\\.)?(${entries})<`, "y")

/**
 * Finds possible options in declarations written by tsc: each property at the beginning of a line.
 *
 * @param {string} text
 * @returns {{ path: string[], line: number, indent: string, literal?: { from: number, to: number } }[]} `path`: names, beginning with the declared
 *   constant; `line`: offset of the option's line; `literal`: range of the help text in the type, if the type contains it
 */
export function optionsIn(text) {
  const found = []
  const names = [] // of the open braces
  let name = ""
  for (let at = 0; at < text.length; ) {
    if (at === 0 || text[at - 1] === "\n") {
      const own = matchAt(property, text, at)
      if (own) {
        name = own[2].startsWith('"') ? JSON.parse(own[2]) : own[2]
        const type = matchAt(entry, text, at + own[0].length)
        const literal = type && helpOf(type[1], text, at + own[0].length + type[0].length)
        const path = [...names, name].filter((one) => one !== "")
        found.push({ path, line: at, indent: own[1], ...(literal && { literal }) })
        at += own[0].length
        continue
      }
    }
    if (text[at] === "{") {
      names.push(name)
      name = ""
    } else if (text[at] === "}")
      name = names.pop() ?? "" // for the next braces of the same type
    else if (text[at] === ";") name = "" // end of the declaration
    at = afterToken(text, at)
  }
  return found
}

/** @param {number} at offset of the first type argument */
function helpOf(type, text, at) {
  const args = [{ from: at, to: at }]
  for (let depth = 0; depth >= 0; ) {
    const character = text[at]
    if (character === undefined) return undefined
    if ("<([{".includes(character)) depth++
    else if (")]}".includes(character) || (character === ">" && text[at - 1] !== "=")) depth--
    if (depth < 0 || (depth === 0 && character === ",")) {
      args.at(-1).to = at
      if (depth === 0) args.push({ from: at + 1, to: at + 1 })
    }
    at = afterToken(text, at)
  }
  const last = type === "ScheduledField" ? args[0] : args.length > 1 ? args.at(-1) : undefined
  if (last === undefined) return undefined
  const from = last.from + (text.slice(last.from, last.to).match(/^\s*/)?.[0].length ?? 0)
  return /^"(?:[^"\\]|\\.)*"$/.test(text.slice(from, last.to)) ? { from, to: last.to } : undefined
}

/** Offset after a string, a comment, or a single character. */
function afterToken(text, at) {
  if (text[at] === '"' || text[at] === "'" || text[at] === "`") {
    const quote = text[at++]
    while (at < text.length && text[at] !== quote) at += text[at] === "\\" ? 2 : 1
    return at + 1
  }
  if (text.startsWith("/*", at)) return text.indexOf("*/", at) + 2
  if (text.startsWith("//", at)) return Math.max(text.indexOf("\n", at), at + 2)
  return at + 1
}

function matchAt(pattern, text, at) {
  pattern.lastIndex = at
  return pattern.exec(text)
}
