import type { Random } from "../src/util/random.ts"

// JSON as others write it: numbers and characters in any spelling, keys in any order, and twice, white space anywhere.

/** A value as it is written, and what it is made of. */
export interface Written {
  readonly text: string
  /** By key, or index; of equal keys the last. Undefined for what has no parts. */
  readonly parts?: ReadonlyMap<string, Written>
}

export const numbers: readonly string[] = [
  ...["0", "-0", "1", "20.0", "1.50", "1e-07", "1E5", "-1e+22", "0.1", "1e400", "-1.7976931348623157e309"],
  ...["2512292042121000001", "9223372036854775807", "-9223372036854775808", "123456789012345678901234567890"],
  ...["9007199254740993", "0.1000000000000000055511151231257827", "5e-324", "1e-400"],
]

export const strings: readonly string[] = [
  ...[
    '""',
    '"a"',
    '" \\" \\\\"',
    '"\\u0041\\/"',
    '"é😀"',
    '"\\u00e9\\ud83d\\ude00"',
    '"\\\\u0041"',
    '"{[,:]}"',
    '"\\n\\t"',
  ],
  ...['"2512292042121000001"', '"<|im_end|>"', '"</tool_call>"', '"\u2028"'],
]

const keys = [
  '"b"',
  '"a"',
  '"10"',
  '"2"',
  '"a b"',
  '""',
  '"__proto__"',
  '"constructor"',
  '"\\u0061"',
  '"é"',
  '"length"',
]

export function foreignJson(random: Random, depth = 3, kind = random.below(depth > 0 ? 5 : 3)): Written {
  const pick = (list: readonly string[]) => list[random.below(list.length)]!
  const space = () => pick(["", "", "", " ", "\n  ", "\t"])
  switch (kind) {
    case 0:
      return { text: pick(numbers) }
    case 1:
      return { text: pick(strings) }
    case 2:
      return { text: pick(["true", "false", "null"]) }
    default: {
      const items = Array.from({ length: random.below(5) }, () => foreignJson(random, depth - 1))
      const named = items.map((item) => ({ item, key: kind === 3 ? pick(keys) : "" }))
      const parts = new Map(named.map(({ item, key }, at) => [key ? (JSON.parse(key) as string) : String(at), item]))
      const members = named.map(
        ({ item, key }) => `${space()}${key && `${key}${space()}:${space()}`}${item.text}${space()}`,
      )
      const inner = members.join(",") || space()
      return { text: kind === 3 ? `{${inner}}` : `[${inner}]`, parts }
    }
  }
}

/** An object, as arguments of a call are. */
export function foreignObject(random: Random): Written {
  return foreignJson(random, 3, 3)
}
