/** Prints a value as one JSON line. */
export function printJson(value: unknown): void {
  printJsonText(JSON.stringify(value))
}

/** Prints JSON text as one line. Control and invisible characters are escaped. */
export function printJsonText(json: string): void {
  process.stdout.write(`${escaped(json)}\n`)
}

/** JSON text with all control and invisible characters escaped. These can only occur in strings. */
export function escaped(json: string): string {
  return json.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\n" ? character : character.split("").map(escapeOf).join(""),
  )
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
}
