// Changes of values in a JSON text, or in one line of a text of such lines.
import { tokens } from "./mutate.mjs"

const numbers = [0, -1, 1, 0.5, 1e9, 2 ** 31, 2 ** 32, 2 ** 53, 1e300, -1e300, 1e-300, 65_536, 999_999_999]

function value(draws) {
  const kinds = [
    () => draws.of(numbers),
    () => draws.of(tokens),
    () => draws.of([null, true, false, "", [], {}]),
    () => "x".repeat(draws.of([300, 70_000])),
    () => Array(draws.of([100, 20_000])).fill(draws.of([0, "a", null, {}, []])),
    () => Object.fromEntries(Array.from({ length: draws.of([100, 5000]) }, (_, at) => [`key${at}`, at])),
    () => nested(draws, draws.of([50, 1000, 5000])),
  ]
  return draws.of(kinds)()
}

function nested(draws, depth) {
  const inArray = draws.chance(0.5)
  let inner = 0
  for (let level = 0; level < depth; level++) inner = inArray ? [inner] : { a: inner }
  return inner
}

/** Places in a value: its holder and key, at most some thousands. */
function places(root) {
  const found = []
  const open = [root]
  while (open.length > 0 && found.length < 5000) {
    const holder = open.pop()
    for (const key of Object.keys(holder)) {
      found.push([holder, key])
      if (typeof holder[key] === "object" && holder[key] !== null) open.push(holder[key])
    }
  }
  return found
}

function change(root, draws) {
  const all = places(root)
  if (all.length === 0) return value(draws)
  const [holder, key] = draws.of(all)
  const [otherHolder, otherKey] = draws.of(all)
  const kind = draws.below(6)
  if (kind === 0 && !Array.isArray(holder)) delete holder[key]
  else if (kind === 1 && Array.isArray(holder)) holder.push(...Array(1 + draws.below(64)).fill(holder[key]))
  else if (kind === 2) holder[key] = structuredClone(otherHolder[otherKey])
  else if (kind === 3 && !Array.isArray(holder))
    Object.defineProperty(holder, draws.of(tokens), { ...own, value: holder[key] })
  else if (kind === 4 && typeof holder[key] === "number")
    holder[key] = draws.of([-holder[key], holder[key] * 1000, holder[key] + 1])
  else holder[key] = value(draws)
  return root
}
const own = { enumerable: true, configurable: true, writable: true }

const written = (json) => Buffer.from(JSON.stringify(json))

/** Undefined where this is no JSON. */
export function mutateJson(bytes, draws) {
  const text = bytes.toString("utf8")
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return written(change(JSON.parse(text), draws))
  } catch {}
  const lines = text.split("\n")
  const at = draws.below(lines.length)
  try {
    lines[at] = written(change(JSON.parse(lines[at]), draws)).toString()
    return Buffer.from(lines.join("\n"))
  } catch {
    return undefined
  }
}
