import { formatNumber } from "../../util/format.ts"

/** Nearer to 0 it is what adding up has left over. */
const noise = 1e-9

/** Three digits that count, with a real minus; a dash for what is not known. */
export function short(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "–"
  return formatNumber(Math.abs(value) < noise ? 0 : value).replaceAll("-", "−")
}

/** The same with its sign: advantages and what else is better or worse than others. */
export function signed(value: number | undefined): string {
  return tone(value) === "good" ? `+${short(value)}` : short(value)
}

/** Whether it is better or worse than others, as a class; `even` for neither. */
export function tone(value: number | undefined): "good" | "bad" | "even" {
  return value !== undefined && value >= noise ? "good" : value !== undefined && value <= -noise ? "bad" : "even"
}

/** To two places: what there is room for in a picture. */
export function hundredths(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value * 100) / 100
}

/** Whole, with its thousands told apart. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`
}
