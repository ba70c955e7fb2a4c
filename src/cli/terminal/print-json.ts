/** Prints a value as one JSON line. */
export function printJson(value: unknown): void {
  printJsonText(JSON.stringify(value))
}

/** The same for a text that is JSON: what a terminal would obey or hide is written as the escape that JSON has for it. */
export function printJsonText(json: string): void {
  process.stdout.write(`${escaped(json)}\n`)
}

/** The same JSON in characters that a terminal shows. All others can only be part of strings. */
export function escaped(json: string): string {
  return json.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\n" ? character : character.split("").map(escapeOf).join(""),
  )
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
}
