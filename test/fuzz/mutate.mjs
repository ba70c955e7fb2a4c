// Changes of an input, by what it looks like: bytes always, lines where it is text, values where it is JSON.
import { mutateJson } from "./mutate-json.mjs"

/** Numbers that lengths, counts and offsets must not be. */
const sizes = [0, 1, 2 ** 7, 2 ** 8 - 1, 2 ** 15, 2 ** 16 - 1, 2 ** 24, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]

/** Pieces of text that some reader takes for more than text. */
export const tokens = [
  ...[
    "__proto__",
    "constructor",
    "toString",
    "../../etc/passwd",
    "/dev/zero",
    "%E0%A4%A",
    "%00",
    "\u0000",
    "\ufeff",
    "\ufffd",
  ],
  ...["1e999", "-0", "NaN", "-Infinity", "9007199254740993", "99999999999999999999", "1e-400", "0x10", "null", "true"],
  ...[
    "{{",
    "}}",
    "{%",
    "%}",
    "{% for a in range(99999999) %}{% endfor %}",
    "{{ 'a' * 999999999 }}",
    "&a *a",
    "!!js/function",
    "<<: *a",
  ],
  ...[
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "(a+)+$",
    "\\p{L}",
    "\u{1f600}",
    "\u202e",
    "\u001b[2J",
    "\r\n\r\n",
    '"',
    "\\u",
    "\\ud800",
  ],
]

const bytesOf = (value) => Buffer.from(value)

/** A text of many of one sort: nested, or long. */
function repeated(draws) {
  const count = draws.of([64, 600, 5000, 20_000, 100_000])
  return draws.of(["[", "{", '{"a":', "(", "a", " ", "\n", "- ", "a ", "\u00e9", "0", "{{", "%25", "/"]).repeat(count)
}

const byteChanges = [
  function flip(bytes, draws) {
    const changed = Buffer.from(bytes)
    for (let n = 1 + draws.below(8); n > 0 && changed.length > 0; n--)
      changed[draws.below(changed.length)] ^= 1 << draws.below(8)
    return changed
  },
  (bytes, draws) => bytes.subarray(0, draws.below(bytes.length + 1)),
  function remove(bytes, draws) {
    const at = draws.below(bytes.length + 1)
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + draws.below(64))])
  },
  function duplicate(bytes, draws) {
    const at = draws.below(bytes.length + 1)
    const part = bytes.subarray(at, at + 1 + draws.below(256))
    return Buffer.concat([bytes.subarray(0, at), ...Array(1 + draws.below(32)).fill(part), bytes.subarray(at)])
  },
  function resize(bytes, draws) {
    const changed = Buffer.from(bytes)
    const width = draws.of([1, 2, 4, 8])
    if (changed.length < width) return changed
    const at = draws.chance(0.3)
      ? draws.below(Math.min(64, changed.length - width + 1))
      : draws.below(changed.length - width + 1)
    const size = draws.of(sizes)
    if (width === 8)
      changed.writeBigUInt64LE(draws.chance(0.2) ? 2n ** 64n - 1n : BigInt(size) * 2n ** BigInt(draws.below(32)), at)
    else if (draws.chance(0.5)) changed.writeUIntLE(size % 2 ** (8 * width), at, width)
    else changed.writeUIntBE(size % 2 ** (8 * width), at, width)
    return changed
  },
  function insert(bytes, draws) {
    const at = draws.below(bytes.length + 1)
    const piece = draws.chance(0.2) ? repeated(draws) : draws.of(tokens)
    return Buffer.concat([
      bytes.subarray(0, at),
      bytesOf(piece),
      bytes.subarray(at + draws.of([0, 0, 1, piece.length])),
    ])
  },
  function splice(bytes, draws, others) {
    const other = draws.of(others)
    const [at, from] = [draws.below(bytes.length + 1), draws.below(other.length + 1)]
    return Buffer.concat([bytes.subarray(0, at), other.subarray(from, from + draws.below(4096)), bytes.subarray(at)])
  },
]

function inLines(bytes, draws) {
  const lines = bytes.toString("latin1").split("\n")
  const [at, other] = [draws.below(lines.length), draws.below(lines.length)]
  const change = draws.below(3)
  if (change === 0) lines.splice(at, 1)
  else if (change === 1) lines.splice(at, 0, lines[other])
  else [lines[at], lines[other]] = [lines[other], lines[at]]
  return Buffer.from(lines.join("\n"), "latin1")
}

/** `bytes` changed in one to four ways; `others` are what parts may be taken from. */
export function mutate(bytes, draws, others) {
  let changed = bytes
  for (let n = 1 + draws.below(4); n > 0; n--) {
    const json = draws.chance(0.5) ? mutateJson(changed, draws) : undefined
    if (json) changed = json
    else if (draws.chance(0.1)) changed = inLines(changed, draws)
    else changed = draws.of(byteChanges)(changed, draws, others)
    if (changed.length > 2 ** 22) changed = changed.subarray(0, 2 ** 22)
  }
  return changed
}
