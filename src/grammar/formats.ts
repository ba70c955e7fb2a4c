import type { Node } from "./node.ts"
import { patternString } from "./pattern.ts"

// Formats of JSON Schema as patterns: those of OpenAI's structured outputs. Every month has the days 1 to 31, because a calendar is not a
// regular language.

const [year, month, day] = ["\\d{4}", "(0[1-9]|1[0-2])", "(0[1-9]|[12]\\d|3[01])"]
const clock = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?"
const zone = "(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
const byte = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
const label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
const group = "[0-9A-Fa-f]{1,4}"

const patterns: Readonly<Record<string, string>> = {
  date: `${year}-${month}-${day}`, // RFC 3339
  time: `${clock}${zone}`,
  "date-time": `${year}-${month}-${day}T${clock}${zone}`,
  duration: "P(\\d+W|(\\d+Y)?(\\d+M)?\\d+D|(\\d+Y)?\\d+M|\\d+Y)", // ISO 8601, of whole days and more
  email: `[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@${label}(\\.${label})+`,
  hostname: `${label}(\\.${label})*`,
  ipv4: `${byte}(\\.${byte}){3}`,
  ipv6: `(${group}:){7}${group}`, // written out
  uuid: "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
}

export const formatNames: readonly string[] = Object.keys(patterns)

const made = new Map<string, Node>()

/** Grammar of a JSON string of a format; undefined for an unknown format. */
export function formatString(format: string): Node | undefined {
  if (!Object.hasOwn(patterns, format)) return undefined
  const node = made.get(format) ?? patternString(`^${patterns[format]}$`)
  made.set(format, node)
  return node
}
