import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { copyInto } from "../../src/model-files/copied-files.ts"
import { ChatTemplate, type ChatTemplateLimits } from "../../src/tokenizer/chat-template.ts"
import { edit, open, tokenizerFolder } from "./scratch.ts"

const chat = [
  { role: "system", content: "You push boxes." },
  { role: "user", content: "# P X _\n{{ messages }} {% raw %}" },
  { role: "assistant", content: "<action>right</action>" },
]

const chatMl = (messages: readonly { role: string; content: string }[]) =>
  messages.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join("")

function template(source: string, limits: ChatTemplateLimits = {}): ChatTemplate {
  const made = new ChatTemplate(source, "a test", limits)
  onTestFinished(() => made.dispose())
  return made
}

describe("renderChat", () => {
  it("writes ChatML with the template of a learned tokenizer", async () => {
    const tokenizer = await open(await tokenizerFolder())
    expect(await tokenizer.renderChat(chat, { addGenerationPrompt: false })).toBe(chatMl(chat))
    expect(await tokenizer.renderChat(chat)).toBe(`${chatMl(chat)}<|im_start|>assistant\n`)
    expect((await tokenizer.encodeChat(chat)).tokens).toEqual(
      tokenizer.encode(`${chatMl(chat)}<|im_start|>assistant\n`),
    )
  })

  it("passes the variables of transformers to templates", async () => {
    const directory = await tokenizerFolder()
    writeFileSync(
      join(directory, "chat_template.jinja"),
      [
        "{{ eos_token }} {{ pad_token }} {{ tools is none }} {{ documents is none }} {{ bos_token is defined }}",
        " {{ enable_thinking | default(true) }} {{ strftime_now('%Y') | length }}",
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role here') }}{% endif %}",
      ].join(""),
    )
    const tokenizer = await open(directory)
    const messages = chat.slice(1)
    expect(await tokenizer.renderChat(messages)).toBe("<|im_end|> <|endoftext|> True True False True 4")
    const withoutThinking = await tokenizer.renderChat(messages, { variables: { enable_thinking: false } })
    expect(withoutThinking).toBe("<|im_end|> <|endoftext|> True True False False 4")
    await expect(tokenizer.renderChat(chat)).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
      message: expect.stringContaining("no system role here"),
    })
  })

  it("prefers chat_template.jinja, then the default of a list in tokenizer_config.json", async () => {
    const directory = await tokenizerFolder()
    edit(join(directory, "tokenizer_config.json"), (config) => {
      config.chat_template = [
        { name: "tool_use", template: "tools" },
        { name: "default", template: "default" },
      ]
    })
    expect(await (await open(directory)).renderChat(chat)).toBe("default")
    writeFileSync(join(directory, "chat_template.jinja"), "file")
    const tokenizer = await open(directory)
    expect(await tokenizer.renderChat(chat)).toBe("file")
    expect(tokenizer.files).toContain(join(directory, "chat_template.jinja"))
  })

  const named = { default: "plain", tool_use: "tools", rag: "documents" }
  const layouts: Record<string, (directory: string) => void> = {
    "a list": (directory) =>
      edit(join(directory, "tokenizer_config.json"), (config) => {
        config.chat_template = Object.entries(named).map(([name, template]) => ({ name, template }))
      }),
    "an object": (directory) =>
      edit(join(directory, "tokenizer_config.json"), (config) => {
        config.chat_template = named
      }),
    files: (directory) => {
      mkdirSync(join(directory, "additional_chat_templates"))
      writeFileSync(join(directory, "chat_template.jinja"), named.default)
      for (const name of ["tool_use", "rag"] as const)
        writeFileSync(join(directory, "additional_chat_templates", `${name}.jinja`), named[name])
    },
  }
  for (const [layout, write] of Object.entries(layouts))
    it(`takes the template named tool_use where there are tools, of ${layout}`, async () => {
      const directory = await tokenizerFolder()
      write(directory)
      const copy = mkdtempSync(join(tmpdir(), "gigpo-copy-"))
      onTestFinished(() => rmSync(copy, { recursive: true }))
      await copyInto(copy, (await open(directory)).files)
      for (const place of [directory, copy]) {
        const tokenizer = await open(place)
        expect(await tokenizer.renderChat(chat)).toBe("plain")
        expect(await tokenizer.renderChat(chat, { variables: { tools: [] } })).toBe("plain")
        expect(await tokenizer.renderChat(chat, { variables: { tools: [{}] } })).toBe("tools")
        expect([tokenizer.chatTemplate, tokenizer.toolTemplate]).toEqual(["plain", "tools"])
      }
    })

  it("names the templates where none is the default", async () => {
    const directory = await tokenizerFolder()
    edit(join(directory, "tokenizer_config.json"), (config) => {
      config.chat_template = [{ name: "rag", template: "documents" }]
    })
    const tokenizer = await open(directory)
    await expect(tokenizer.renderChat(chat)).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
      message: expect.stringContaining("the chat templates rag and no default"),
    })
  })

  it("names the fix where there is no template", async () => {
    const directory = await tokenizerFolder()
    edit(join(directory, "tokenizer_config.json"), (config) => delete config.chat_template)
    const tokenizer = await open(directory)
    expect(tokenizer.chatTemplate).toBeUndefined()
    await expect(tokenizer.renderChat(chat)).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
      message: expect.stringContaining("chat_template.jinja"),
    })
  })

  it("needs no file any more once the tokenizer is open", async () => {
    const directory = await tokenizerFolder()
    const tokenizer = await open(directory)
    rmSync(directory, { recursive: true })
    expect(await tokenizer.renderChat([])).toBe("<|im_start|>assistant\n")
  })
})

describe("a chat template", () => {
  const endless =
    "{% for i in range(n) %}{% for j in range(n) %}{% for k in range(n) %}{% endfor %}{% endfor %}{% endfor %}ok"

  it("is stopped where it runs too long, and the renders around it still succeed", async () => {
    const slow = template(endless, { timeoutMs: 500 })
    const sizes = [1, 1, 20_000, 1, 20_000, 1]
    const results = await Promise.allSettled(sizes.map((n) => slow.render({ n })))
    expect(results.map((result) => (result.status === "fulfilled" ? result.value : result.reason.code))).toEqual(
      sizes.map((n) => (n === 1 ? "ok" : "TEMPLATE_TIMEOUT")),
    )
    expect(await slow.render({ n: 2 })).toBe("ok")
  })

  it("is not blamed for a main thread that was busy", async () => {
    const quick = template("{{ x }}", { timeoutMs: 250 })
    await quick.parse()
    const rendered = quick.render({ x: "ok" })
    for (const end = Date.now() + 800; Date.now() < end; );
    expect(await rendered).toBe("ok")
  })

  it("gives every one of many renders its own answer", async () => {
    const echo = template("{{ x }}!", { timeoutMs: 2000 })
    const numbers = Array.from({ length: 2000 }, (_, n) => n)
    expect(await Promise.all(numbers.map((x) => echo.render({ x })))).toEqual(numbers.map((x) => `${x}!`))
  })

  it("may give a text as long as the limit and no longer", async () => {
    const long = template("{% for i in range(n) %}x{% endfor %}", { maxLength: 1000, timeoutMs: 2000 })
    expect(await long.render({ n: 1000 })).toHaveLength(1000)
    await expect(long.render({ n: 1001 })).rejects.toMatchObject({ code: "BAD_TOKENIZER" })
    expect(await long.render({ n: 3 })).toBe("xxx")
  })

  const doubling = (start: string) =>
    `{% set ns = namespace(x=${start}) %}{% for i in range(27) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x.replace('a', 'bbbb') | length }}`
  for (const [what, start] of Object.entries({ text: "'ab'", list: "[1]" }))
    it(`cannot create a huge ${what}, which would crash the process`, async () => {
      const greedy = template(`{% if ok %}ok{% else %}${doubling(start)}{% endif %}`, { timeoutMs: 2000 })
      await expect(greedy.render({ ok: false })).rejects.toMatchObject({ code: "BAD_TOKENIZER" })
      expect(await greedy.render({ ok: true })).toBe("ok")
    })

  it("sees nothing of the process", async () => {
    for (const probe of [
      "process",
      "require",
      "globalThis",
      "messages.constructor",
      "''.constructor",
      "range.constructor",
    ])
      expect(await template(`{{ ${probe} is defined }}`, { timeoutMs: 2000 }).render({ messages: [] })).toBe("False")
  })

  it("rejects variables that are not data", async () => {
    const plain = template("{{ f }}", { timeoutMs: 2000 })
    await expect(plain.render({ f: () => 1 })).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    expect(await plain.render({ f: 1 })).toBe("1")
  })

  it("cannot be used after dispose", async () => {
    const disposed = template("ok")
    expect(await disposed.render({})).toBe("ok")
    await disposed.dispose()
    await expect(disposed.render({})).rejects.toMatchObject({ code: "DISPOSED" })
    await expect(disposed.parse()).rejects.toMatchObject({ code: "DISPOSED" })
    await disposed.dispose()
  })

  it("is not rejected where its process was suspended meanwhile", async () => {
    const now = performance.now.bind(performance)
    let looks = 0
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + (++looks > 2 ? 60_000 : 0))
    onTestFinished(() => clock.mockRestore())
    const text = await template("{% for i in range(5000) %}x{% endfor %}").render({})
    expect(text).toHaveLength(5000)
    expect(looks).toBeGreaterThan(2)
  })
})
