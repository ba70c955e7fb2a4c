import { InvalidArgumentError } from "commander"
import { deviceProblem } from "../../engine/native/devices.ts"

// Parsers of the options of `gigpo estimate`.

export function parseDevice(text: string): string {
  const problem = deviceProblem(text)
  if (problem === undefined) return text
  throw new InvalidArgumentError(`It ${problem}.`)
}

export function parseMemory(text: string): number {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?$/i.exec(text) ?? []
  const power = "kmgt".indexOf(unit.charAt(0).toLowerCase() || " ") + 1
  const bytes = Number(number) * (unit.length === 2 ? 1024 : 1000) ** power
  if (bytes >= 1e6) return bytes
  throw new InvalidArgumentError("It must be a size of at least a megabyte, e.g. 80GB or 24GiB.")
}

export function parseCount(text: string): number {
  const count = Number(text)
  if (count > 0 && Number.isFinite(count)) return count
  throw new InvalidArgumentError("It must be a number above 0.")
}

export function parsePercent(text: string): number {
  const percent = Number(text)
  if (percent > 0 && percent <= 100) return percent
  throw new InvalidArgumentError("It must be above 0 and at most 100.")
}
