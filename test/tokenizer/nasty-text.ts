import type { Random } from "../../src/util/random.ts"

const snippets = [
  " ",
  "  ",
  "\n",
  "\r\n",
  "\t",
  "\0",
  "\u0085",
  "\u00a0",
  "\u2028",
  "\u3000",
  "\ufeff",
  "\u200d",
  "\u202e",
  "e\u0301",
  "ß",
  "İ",
  "ﬁ",
  "한국어",
  "עברית",
  "हिन्दी",
  "👩‍👩‍👧‍👦",
  "🇩🇪",
  "<action>",
  "</think>",
  "<a b>",
  "<|im_end|>",
  "<|im_",
  "Ġ",
  " Observation",
  "it's",
  "12345",
  "__proto__",
]

/** Well-formed text of the kind that breaks tokenizers: joiners, controls, half-written tags, any code point. */
export function nastyText(random: Random): string {
  let text = ""
  for (let parts = random.below(30); parts > 0; parts--) {
    const kind = random.below(4)
    if (kind === 0) text += snippets[random.below(snippets.length)]
    else if (kind === 1) text += String.fromCodePoint(0x20 + random.below(0x5f))
    else if (kind === 2) text += String.fromCodePoint(0xa0 + random.below(0x3000))
    else text += String.fromCodePoint(anyScalar(random))
  }
  return text
}

function anyScalar(random: Random): number {
  const codePoint = random.below(0x110000 - 0x800)
  return codePoint < 0xd800 ? codePoint : codePoint + 0x800
}
