import { describe, expect, it, onTestFinished, vi } from "vitest"
import { Tokenizer, type TokenizerOptions } from "../../src/tokenizer/tokenizer.ts"
import { chatMl, family } from "./templates.ts"

const dated = `{{ strftime_now('%d %b %Y') }}{% if enable_thinking is defined and not enable_thinking %} quick{% endif %} {{ mood }}\n${chatMl}`
const chat = [{ role: "user", content: "Hi" }]

async function opened(options: TokenizerOptions["chat"], template = dated): Promise<Tokenizer> {
  const { directory } = await family(template)
  const tokenizer = await Tokenizer.open(directory, { chat: options, timeoutMs: 2000 })
  onTestFinished(() => tokenizer.dispose())
  return tokenizer
}

const firstLine = async (tokenizer: Tokenizer, variables = {}) =>
  tokenizer.decode((await tokenizer.encodeChat(chat, { variables })).tokens).split("\n")[0]

describe("chat options", () => {
  it("set variables of the template and its date, below those of one chat", async () => {
    const tokenizer = await opened({ variables: { enable_thinking: false, mood: "calm" }, now: "2024-02-29" })
    expect(await firstLine(tokenizer)).toBe("29 Feb 2024 quick calm")
    expect(await firstLine(tokenizer, { enable_thinking: true, mood: "gay" })).toBe("29 Feb 2024 gay")
    expect(tokenizer.date).toBe("2024-02-29")
  })

  it("leave the date to each render, until one is kept", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date(2026, 10, 25, 23, 59) })
    onTestFinished(() => void vi.useRealTimers())
    const tokenizer = await opened(undefined)
    expect(await firstLine(tokenizer)).toBe("25 Nov 2026 ")
    vi.setSystemTime(new Date(2026, 10, 26, 0, 1))
    expect(await firstLine(tokenizer)).toBe("26 Nov 2026 ")
    expect(tokenizer.keepDate("2026-11-26T00:01:00")).toBe("2026-11-26T00:01:00")
    vi.setSystemTime(new Date(2027, 0, 1))
    expect(await firstLine(tokenizer)).toBe("26 Nov 2026 ")
    expect(tokenizer.keepDate("2027-01-01")).toBe("2026-11-26T00:01:00")
  })

  const wrong: [string, object, RegExp][] = [
    ["a date that there is not", { now: "2026-02-30" }, /now must be a date such as "2026-11-25"/],
    ["a date with a zone", { now: "2026-02-03T00:00:00Z" }, /now must be a date/],
    ["a number for a date", { now: 2026 }, /now must be a date/],
    ["variables that are a list", { variables: [1] }, /variables must be an object/],
    ["the messages", { variables: { messages: [] } }, /variables must not contain messages/],
    ["tools", { variables: { tools: [] } }, /variables must not contain tools/],
    ["the header of a reply", { variables: { add_generation_prompt: true } }, /must not contain add_generation_prompt/],
    [
      "a variable that the template does not read",
      { variables: { enable_thinkin: true } },
      /chat\.variables\.enable_thinkin would do nothing/,
    ],
    ["an unknown option", { date: "2026-11-25" }, /date is not an option/],
  ]
  it.each(wrong)("are rejected: %s", async (_, options, message) => {
    await expect(opened(options as TokenizerOptions["chat"])).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
  })
})
