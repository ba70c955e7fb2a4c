import { describe, expect, it } from "vitest"
import { visible } from "../../src/util/visible.ts"

describe("text of others", () => {
  it("has escapes for what hides, moves or reverses text, and line feeds as they are", () => {
    expect(visible("a\u001b[2Jb\tc\r\nd\u202ee\u0000")).toBe("a\\x1b[2Jb\\tc\\r\nd\\u{202e}e\\x00")
    expect(visible("\ud800 \u{1f600} \udfff\u2028")).toBe("\\u{d800} \u{1f600} \\u{dfff}\\u{2028}")
  })

  it("keeps joiners that belong to a character or a word, and shows others", () => {
    const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}"
    const words = [
      family,
      "\u{1f3f3}\ufe0f\u200d\u{1f308}",
      "\u{1f469}\u{1f3fd}\u200d\u{1f680}",
      "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
      "\u0915\u094d\u200d\u0937",
    ]
    for (const word of words) expect(visible(word)).toBe(word)
    expect(visible("pass\u200dword \u200d x\u200c")).toBe("pass\\u{200d}word \\u{200d} x\\u{200c}")
    expect(visible("\u{1f600}\u200d\u200d\u{1f600}\u200d")).toBe("\u{1f600}\\u{200d}\\u{200d}\u{1f600}\\u{200d}")
  })
})
