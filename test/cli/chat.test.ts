import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PassThrough } from "node:stream"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { plainGenerator } from "../../src/chat/plain-generator.ts"
import { Conversation } from "../../src/cli/conversation.ts"
import { converse } from "../../src/cli/converse.ts"
import { ChatView } from "../../src/cli/terminal/chat-view.ts"
import { Scripted } from "../endpoint/scripted.ts"
import { open, tokenizerFolder } from "../tokenizer/scratch.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

/** A conversation with a model that says these replies in turn, and what is shown of it. */
async function talking(completions: readonly string[], pause = 0) {
  const codec = await open(await tokenizerFolder())
  const policy = new Scripted(codec, completions, { pause })
  const conversation = new Conversation(
    plainGenerator({ policy, codec, temperature: 1, maxCompletionTokens: 500 }),
    "Be kind.",
  )
  const shown = { completions: "", notes: "" }
  const into = (name: keyof typeof shown) => ({
    write(text: string) {
      shown[name] += text
    },
  })
  const view = new ChatView(into("completions"), into("notes"))
  const prompts = () => policy.requests.map(({ prompt }) => codec.decode(prompt))
  return { conversation, view, shown, prompts, policy }
}

const chatOf = (...messages: readonly (readonly [string, string])[]) =>
  `${messages.map(([role, text]) => `<|im_start|>${role}\n${text}<|im_end|>\n`).join("")}<|im_start|>assistant\n`

describe("a conversation", () => {
  it("continues, is cleared and restarted, one line at a time", async () => {
    const { conversation, view, shown, prompts } = await talking(["one", "two", "three", "four", "five"])
    const input = new PassThrough()
    input.end("a\n\nb\n/clear\nc\n/system  Be brief. \nd\n/system\n/nonsense\ne /clear\n/exit\nf\n")
    await converse({ conversation, view, input, signal: new AbortController().signal })
    expect(shown.completions).toBe("one\ntwo\nthree\nfour\nfive\n")
    expect(shown.notes).toMatch(/^There is no command \/nonsense\. Commands:\n {2}\/clear/)
    const kind = ["system", "Be kind."] as const
    expect(prompts()).toEqual([
      chatOf(kind, ["user", "a"]),
      chatOf(kind, ["user", "a"], ["assistant", "one"], ["user", "b"]),
      chatOf(kind, ["user", "c"]),
      chatOf(["system", "Be brief."], ["user", "d"]),
      chatOf(["user", "e /clear"]),
    ])
  })

  it("shows no escape codes, and separates thinking from the answer", async () => {
    const { conversation, view, shown } = await talking(["<think>\x1b[2Jhm\n</think>\n\na\x1b]0;b\x07\u202e"])
    const input = new PassThrough()
    input.end("Hi")
    await converse({ conversation, view, input, signal: new AbortController().signal })
    expect(shown).toEqual({
      completions: "a\\x1b]0;b\\x07\\u{202e}\n",
      notes: "<think>\n\\x1b[2Jhm\n</think>\n",
    })
  })

  it("stops a completion at Ctrl-C and keeps its text; leaves at a second Ctrl-C", async () => {
    const { conversation, view, shown, prompts, policy } = await talking(["abcdefgh".repeat(50), "two"], 5)
    const [input, terminal] = [new PassThrough(), new PassThrough()]
    terminal.resume()
    const ended = converse({ conversation, view, input, terminal, signal: new AbortController().signal })
    input.write("go\r")
    await expect.poll(() => shown.completions.length).toBeGreaterThan(3)
    input.write("\x03")
    await expect.poll(() => shown.notes).toBe("(stopped)\n")
    const said = shown.completions.trimEnd()
    expect("abcdefgh".repeat(50).startsWith(said)).toBe(true)
    expect(policy.requests[0]!.signal!.aborted).toBe(true)
    input.write("on\r")
    await expect.poll(() => shown.completions).toBe(`${said}\ntwo\n`)
    expect(prompts()[1]).toBe(chatOf(["system", "Be kind."], ["user", "go"], ["assistant", said], ["user", "on"]))
    input.write("\x03")
    await expect(ended).rejects.toMatchObject({ name: "GigpoError", exitCode: 130 })
  })

  it("reports that it has become too long, and can continue only on a terminal", async () => {
    const long = "the room ".repeat(5000)
    const piped = await talking(["one"])
    const input = new PassThrough()
    input.end(`${long}\nHi\n`)
    const lines = converse({ ...piped, input, signal: new AbortController().signal })
    await expect(lines).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: /leaves no room for a completion in the model.s 4096 positions/,
    })

    const { conversation, view, shown } = await talking(["one"])
    const [typed, terminal] = [new PassThrough(), new PassThrough()]
    terminal.resume()
    const ended = converse({ conversation, view, input: typed, terminal, signal: new AbortController().signal })
    typed.write(`${long}\rHi\r`)
    await expect.poll(() => shown.completions).toBe("one\n")
    expect(shown.notes).toMatch(
      /leaves no room for a completion in the model.s 4096 positions.* \/clear removes all messages\.\n$/,
    )
    typed.end()
    await ended
  })
})

describe.skipIf(!built)("gigpo chat (needs dist: npm run build:ts)", () => {
  let folder: string
  const chat = (input: string, ...words: string[]) =>
    gigpo(["chat", "small/model", "--temperature", "0", ...words], { cwd: folder, input })
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-chat-"))
    const long = ["--set", "initialModel.maxPositions=400"]
    expect(await gigpo(["init", "sokoban", "small", ...tiny, ...long], { cwd: folder })).toMatchObject({ code: 0 })
  })
  afterAll(async () => await rm(folder, { recursive: true }))

  it("sends piped input as one message, or each line as one", async () => {
    const one = await chat("first\nsecond\n", "--max-tokens", "5")
    expect(one).toMatchObject({ code: 0, stderr: "(truncated: raise --max-tokens, up to the model's maximum)\n" })
    const two = await chat("first\n/clear\nfirst\nsecond\n", "--max-tokens", "5", "--lines")
    expect(two.code).toBe(0)
    const cut = two.stderr.trimEnd().split("\n")
    expect(cut).toHaveLength(3) // two lines are two messages, and a command is none
    expect(two.stdout.startsWith(one.stdout)).toBe(false)
  })

  it("rejects empty messages, and those that do not fit the model", async () => {
    expect(await chat(" \n")).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/Standard input is empty/),
    })
    expect(await chat("word ".repeat(400))).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/leaves no room for a completion in the model's 400 positions/),
    })
  })
})
