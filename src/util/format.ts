// Numbers for display on a terminal or on the page.

/** Formats a number with three significant digits: 0.0123, 12.3, 12,345, 1.2e-6. */
export function formatNumber(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e9 || (size > 0 && size < 1e-4)) return value.toExponential(1)
  if (size >= 100) return Math.round(value).toLocaleString("en-US")
  return String(Number(value.toPrecision(3)))
}

/** Formats a duration: 8.5 s, 45 s, 12 min, 2 h 10 min, 3 d 4 h. */
export function formatDuration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  if (seconds < 99.5) return `${Math.round(seconds)} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 100) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

export function formatShare(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}
