export { formatBytes } from "../../files/format-bytes.ts"
export { formatDuration, formatNumber, formatShare } from "../../util/format.ts"

/** Progress bar of `width` characters. */
export function formatBar(done: number, total: number, width: number): string {
  const filled = total > 0 ? Math.round((width * Math.min(done, total)) / total) : 0
  return "█".repeat(filled) + "░".repeat(width - filled)
}

/** Shortens a line of columns, separated by two spaces or commas, to whole columns. No number is split. */
export function shortened(line: string, width: number): string {
  const characters = [...line]
  if (characters.length <= width) return line
  const cut = (pattern: RegExp, beyond: number) => pattern.exec(characters.slice(0, width + beyond).join(""))?.[1]
  return cut(/^(.*\S)(?: {2}|, )/u, 2) ?? cut(/^(.*\S) /u, 1) ?? characters.slice(0, width).join("")
}
