import { expect, it } from "vitest"
import { formatNames, formatString } from "../../src/grammar/formats.ts"
import { patternString } from "../../src/grammar/pattern.ts"
import { Random } from "../../src/util/random.ts"
import { draw, holder } from "./texts.ts"

const patterns = [
  "^a*b+c?$",
  "^(?:ab|cd){1,2}$",
  "^[a-c\\d_]{2}$",
  "^[^a-y]$",
  "^\\w+\\s\\S$",
  "^(a|b(c|d)*)?$",
  "^x{3}$",
  "^x{2,}?y$",
  "ab",
  "^ab|cd$",
  "^.$",
  '^["\\\\\\n]+$',
  "^\\u00e9\\x41\\.$",
  "^[\\]\\-^]$",
  "",
]
const texts = [
  ...["", "a", "b", "ab", "aabbc", "abab", "cdab", "ababab", "a1", "_c", "z", "é", "é1", "A", "word x", "word  x"],
  ...[
    "bcdc",
    "xxx",
    "xx",
    "xxy",
    "xxxxy",
    "zabz",
    "cd",
    "xcd",
    "abx",
    '"',
    "\\",
    "\n",
    '\\"\n',
    "éA.",
    "éAx",
    "]",
    "-",
    "^",
    "😀",
  ],
]

it("holds as JSON strings exactly what ECMAScript's expressions match", () => {
  for (const pattern of patterns) {
    const holds = holder(patternString(pattern))
    const expression = new RegExp(pattern, "u")
    for (const text of texts)
      expect(holds(JSON.stringify(text)), `${JSON.stringify(text)} of ${pattern}`).toBe(expression.test(text))
  }
})

it("draws texts that match", () => {
  const random = new Random(5)
  for (const pattern of patterns)
    for (let i = 0; i < 8; i++) {
      const text = draw(patternString(pattern), (n) => random.below(n), 60)
      if (text !== undefined)
        expect(new RegExp(pattern, "u").test(JSON.parse(text)), `${text} of ${pattern}`).toBe(true)
    }
})

it("rejects what is not regular, or not read, by name", () => {
  const refusals: Record<string, string> = {
    "(?=a)b": "lookaround",
    "(?<name>a)": "lookaround",
    "(a)\\1": "\\1",
    "\\bword": "\\b",
    "\\p{L}": "\\p",
    a$b: "in the middle",
    "(^a)": "in the middle",
    "*a": "repeats nothing",
    "a{2,1}": "repeats something",
    "a{1001}": "up to 1000",
    "a{x}": "not a repetition",
    "(a": "without its )",
    "a)": "without its (",
    "[a": "too early",
    "[b-a]": "invalid range",
    "\\ud800": "surrogate",
    "\\xzz": "hexadecimal",
    [`${"(".repeat(60)}a${")".repeat(60)}`]: "too deeply",
  }
  for (const [pattern, why] of Object.entries(refusals)) expect(() => patternString(pattern), pattern).toThrow(why)
})

it("knows the formats", () => {
  const examples: Record<string, [string[], string[]]> = {
    date: [["2026-11-23"], ["2026-13-01", "26-1-1"]],
    time: [
      ["23:59:59Z", "01:02:03.25+01:00"],
      ["24:00:00Z", "1:2:3"],
    ],
    "date-time": [["2026-11-23T01:02:03Z"], ["2026-11-23 01:02:03Z"]],
    duration: [
      ["P3D", "P1Y2M", "P2W"],
      ["3D", "P"],
    ],
    email: [["a.b+c@example.org"], ["@example.org", "a@b", "a b@c.de"]],
    hostname: [
      ["example.org", "a"],
      ["-a", "a..b"],
    ],
    ipv4: [
      ["127.0.0.1", "255.255.255.255"],
      ["256.1.1.1", "1.2.3"],
    ],
    ipv6: [["0:0:0:0:0:0:0:1"], ["::1", "1:2"]],
    uuid: [["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]],
  }
  expect(Object.keys(examples).sort()).toEqual([...formatNames].sort())
  for (const [name, [good, bad]] of Object.entries(examples)) {
    const holds = holder(formatString(name)!)
    for (const text of good) expect(holds(`"${text}"`), `${name} ${text}`).toBe(true)
    for (const text of bad) expect(holds(`"${text}"`), `${name} ${text}`).toBe(false)
  }
  expect(formatString("toString")).toBeUndefined()
})
