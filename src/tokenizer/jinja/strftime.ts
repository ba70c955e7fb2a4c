import { unsupported } from "./errors.ts"

/** Wall-clock time without zone. */
export interface Moment {
  readonly year: number
  /** 1 to 12. */
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly microsecond: number
}

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
]

/** Parses a text such as "2026-11-25T14:20:04"; undefined for an invalid time. */
export function parseMoment(source: string): Moment | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?$/.exec(source)
  if (match === null) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const date = new Date(Date.UTC(2000, month - 1, day, hour, minute, second))
  date.setUTCFullYear(year, month - 1, day)
  const microsecond = Number((match[7] ?? "").padEnd(6, "0"))
  const valid =
    year > 0 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60
  return valid ? { year, month, day, hour, minute, second, microsecond } : undefined
}

/** Local wall-clock time of a date, as text for parseMoment. */
export function wallClock(date: Date): string {
  const two = (value: number) => String(value).padStart(2, "0")
  const day = `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** datetime.strftime in the C locale. Directives outside of Python's documentation are rejected. */
export function strftime(moment: Moment, format: string): string {
  return format.replace(/%(-?)(.?)/gsu, (whole, dash: string, letter: string) => {
    const made = directive(moment, letter)
    if (made === undefined) return unsupported(`the directive ${whole} of strftime_now`)
    if (dash === "") return made
    if (!/^\d+$/.test(made) || !"dmyHIMSjUWVGY".includes(letter))
      return unsupported(`the directive ${whole} of strftime_now`)
    return made.replace(/^0+(?=\d)/, "")
  })
}

/** Directives that stand for a format. */
const formats: Readonly<Record<string, string>> = {
  c: "%a %b %e %H:%M:%S %Y",
  x: "%m/%d/%y",
  D: "%m/%d/%y",
  X: "%H:%M:%S",
  T: "%H:%M:%S",
  F: "%Y-%m-%d",
  R: "%H:%M",
  r: "%I:%M:%S %p",
}

const signs: Readonly<Record<string, string>> = { z: "", Z: "", n: "\n", t: "\t", "%": "%" }

function directive(moment: Moment, letter: string): string | undefined {
  if (Object.hasOwn(formats, letter)) return strftime(moment, formats[letter]!)
  return Object.hasOwn(signs, letter) ? signs[letter] : (dateDirective(moment, letter) ?? timeDirective(moment, letter))
}

const number = (value: number, width = 2) => String(value).padStart(width, "0")
const spaced = (value: number) => String(value).padStart(2, " ")

function dateDirective({ year, month, day }: Moment, letter: string): string | undefined {
  const yearDay = dayOfYear(year, month, day)
  const weekday = weekdayOf(year, month, day)
  const iso = isoWeek(year, yearDay, weekday)
  switch (letter) {
    case "a":
      return days[weekday]!.slice(0, 3)
    case "A":
      return days[weekday]
    case "w":
      return String(weekday)
    case "u":
      return String(weekday || 7)
    case "d":
      return number(day)
    case "e":
      return spaced(day)
    case "b":
    case "h":
      return months[month - 1]!.slice(0, 3)
    case "B":
      return months[month - 1]
    case "m":
      return number(month)
    case "y":
      return number(year % 100)
    case "Y":
      return String(year)
    case "C":
      return number(Math.floor(year / 100))
    case "G":
      return String(iso.year)
    case "g":
      return number(iso.year % 100)
    case "V":
      return number(iso.week)
    case "j":
      return number(yearDay, 3)
    case "U":
      return number(Math.floor((yearDay + 6 - weekday) / 7))
    case "W":
      return number(Math.floor((yearDay + 6 - ((weekday + 6) % 7)) / 7))
    default:
      return undefined
  }
}

function timeDirective({ hour, minute, second, microsecond }: Moment, letter: string): string | undefined {
  switch (letter) {
    case "H":
      return number(hour)
    case "k":
      return spaced(hour)
    case "I":
      return number(hour % 12 || 12)
    case "l":
      return spaced(hour % 12 || 12)
    case "p":
      return hour < 12 ? "AM" : "PM"
    case "P":
      return hour < 12 ? "am" : "pm"
    case "M":
      return number(minute)
    case "S":
      return number(second)
    case "f":
      return number(microsecond, 6)
    default:
      return undefined
  }
}

function daysSince1970(year: number, month: number, day: number): number {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return date.getTime() / 86_400_000
}

const dayOfYear = (year: number, month: number, day: number) =>
  daysSince1970(year, month, day) - daysSince1970(year, 1, 1) + 1

/** 0 is Sunday. */
const weekdayOf = (year: number, month: number, day: number) => (((daysSince1970(year, month, day) + 4) % 7) + 7) % 7

function isoWeek(year: number, yearDay: number, weekday: number): { year: number; week: number } {
  const week = Math.floor((yearDay - (weekday || 7) + 10) / 7)
  const weeks = (of: number) => {
    const last = weekdayOf(of, 12, 31)
    return last === 4 || weekdayOf(of, 1, 1) === 4 ? 53 : 52
  }
  if (week < 1) return { year: year - 1, week: weeks(year - 1) }
  return week > weeks(year) ? { year: year + 1, week: 1 } : { year, week }
}
