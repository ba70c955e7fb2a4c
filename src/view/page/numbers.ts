import { formatNumber } from "../../util/format.ts"

/** Absolute value below which a number counts as 0, because rounding errors of sums are of this size. */
const noise = 1e-9

/** Number with three significant digits and a typographic minus sign; a dash for undefined and non-finite values. */
export function short(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "–"
  return formatNumber(Math.abs(value) < noise ? 0 : value).replaceAll("-", "−")
}

/** Number as `short` writes it, with a plus sign if positive. */
export function signed(value: number | undefined): string {
  return tone(value) === "good" ? `+${short(value)}` : short(value)
}

/** CSS class for the sign of a value: `good` for positive, `bad` for negative, `even` for 0 and undefined. */
export function tone(value: number | undefined): "good" | "bad" | "even" {
  return value !== undefined && value >= noise ? "good" : value !== undefined && value <= -noise ? "bad" : "even"
}

/** Value rounded to two decimals, for labels with little space. */
export function hundredths(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value * 100) / 100
}

/** Count with thousands separators and a noun: "1 step", "12,000 tokens". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`
}
