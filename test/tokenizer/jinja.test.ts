import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { RawJson } from "../../src/json/raw.ts"
import { JinjaError } from "../../src/tokenizer/jinja/errors.ts"
import { parseMoment, strftime } from "../../src/tokenizer/jinja/strftime.ts"
import { JinjaTemplate } from "../../src/tokenizer/jinja/template.ts"

const fixtures = fileURLToPath(new URL("../fixtures/jinja", import.meta.url))
const templates = fileURLToPath(new URL("templates", import.meta.url))
const now = "2026-11-25T14:20:04"
const limits = { timeoutMs: 60_000, maxLength: 2 ** 20 }

const readJson = (folder: string, name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"))
const moment = (text: string) => parseMoment(text) ?? expect.fail(`${text} is no moment`)

/** The members of a JSON object, each as it is written. */
function rawMembers(json: string): Record<string, RawJson> {
  const members: Record<string, RawJson> = {}
  const strings = /"(?:[^"\\]|\\.)*"/y
  let at = 1
  const stringAt = () => {
    strings.lastIndex = at
    return strings.exec(json)?.[0]
  }
  while (json[at] !== "}") {
    while (/[\s,]/.test(json[at] as string)) at++
    const key = stringAt() as string
    at += key.length + 1
    const start = at
    for (let depth = 0; depth > 0 || !/[,}]/.test(json[at] as string); ) {
      const text = stringAt()
      if (text === undefined && /[[{]/.test(json[at] as string)) depth++
      if (text === undefined && /[\]}]/.test(json[at] as string)) depth--
      at += text?.length ?? 1
    }
    members[JSON.parse(key)] = new RawJson(json.slice(start, at))
  }
  return members
}

/** The text, or null for an error, or the name of what is not supported. */
function render(
  template: () => JinjaTemplate,
  variables: Record<string, unknown>,
): string | null | { refused: string } {
  try {
    return template().render(variables, moment(now), limits)
  } catch (error) {
    if (!(error instanceof JinjaError)) throw error
    return error.kind === "NotSupported" ? { refused: error.message } : null
  }
}

const digest = (text: string) => `sha256 ${createHash("sha256").update(text).digest("hex").slice(0, 16)}`

describe("Jinja2 in Python", () => {
  it("gives the same for expressions and statements of all kinds, or they are rejected by name", () => {
    const { variables, cases } = readJson(fixtures, "expressions.json")
    const members = rawMembers(variables)
    const different: unknown[] = []
    let refused = 0
    for (const [template, expected] of cases) {
      const made = render(() => new JinjaTemplate(template), members)
      if (made !== null && typeof made === "object") refused++
      else if (made !== expected) different.push({ template, expected, made })
    }
    expect(different).toEqual([])
    expect(cases.length).toBeGreaterThan(1800)
    expect(refused).toBeLessThan(cases.length / 40)
  })

  /** Every template of a folder, in every conversation and setting of its chats.json. */
  function compareChats(chatsFolder: string, folder: string): void {
    const { messages, settings, expected } = readJson(chatsFolder, "chats.json")
    const names = readdirSync(folder).filter((name) => name.endsWith(".jinja"))
    expect(names.sort()).toEqual(Object.keys(expected).sort())
    const chats: Record<string, RawJson>[] = messages.flatMap((conversation: string) =>
      settings.map((setting: string) => ({ ...rawMembers(setting), messages: new RawJson(conversation) })),
    )
    for (const name of names) {
      const template = new JinjaTemplate(readFileSync(join(folder, name), "utf8"))
      const made = chats.map((chat) => render(() => template, chat))
      const inForm = made.map((text, at) =>
        typeof text === "string" && expected[name][at]?.startsWith("sha256 ") ? digest(text) : text,
      )
      expect(inForm, name).toEqual(expected[name])
      expect(made.filter((text) => typeof text === "string").length, name).toBeGreaterThan(chats.length / 4)
    }
  }

  it("gives the same for chat templates with tools, thoughts, parts and odd texts", () =>
    compareChats(fixtures, templates))

  const foreign = process.env.GIGPO_TEMPLATES
  it.skipIf(foreign === undefined || !existsSync(foreign))(
    "gives the same for the templates in the folder GIGPO_TEMPLATES, made by scripts/fixtures/make_jinja.py",
    () => compareChats(foreign as string, foreign as string),
  )

  it("formats the same dates", () => {
    for (const [date, formats] of readJson(fixtures, "dates.json"))
      for (const [format, expected] of Object.entries(formats))
        expect(`${date} ${format} ${strftime(moment(date), format)}`).toBe(`${date} ${format} ${expected}`)
  })
})

describe("unsupported syntax", () => {
  for (const [template, name] of [
    ["{% extends 'a' %}", "{% extends %}"],
    ["{% include 'a' %}", "{% include %}"],
    ["{% import 'a' as b %}", "{% import %}"],
    ["{% from 'a' import b %}", "{% from %}"],
    ["{% block a %}{% endblock %}", "{% block %}"],
    ["{% autoescape true %}{% endautoescape %}", "{% autoescape %}"],
    ["{% if false %}{{ x|pprint }}{% endif %}", "filter pprint"],
    ["{{ x|random }}", "filter random"],
    ["{{ x|wordwrap }}", "filter wordwrap"],
    ["{{ x|urlize }}", "filter urlize"],
    ["{{ x|xmlattr }}", "filter xmlattr"],
    ["{{ x|striptags }}", "filter striptags"],
    ["{{ x|forceescape }}", "filter forceescape"],
    ["{{ self }}", "self"],
  ] as const)
    it(`${name} is rejected when the template is read`, () =>
      expect(() => new JinjaTemplate(template)).toThrow(`${name}`))

  for (const [expression, name] of [
    ["'a'.encode()", "str.encode"],
    ["'a'.casefold()", "str.casefold"],
    ["'a'.translate({})", "str.translate"],
    ["''.__class__", "__class__"],
    ["lipsum()", "lipsum"],
    ["['a']|map('upper')", "printing a generator"],
    ["['a']|reverse", "printing a reversed"],
    ["range", "printing a function"],
    ["'<a>'|e + '<b>'", "escaped or safe text"],
    ["(-8) ** 0.5", "complex number"],
    ["strftime_now('%Q')", "%Q"],
    ["'a' is sameas 'a'", "sameas"],
    ["5[1:]", "slice of the constant"],
  ] as const)
    it(`${expression} is rejected when it is reached`, () => {
      expect(render(() => new JinjaTemplate(`{{ ${expression} }}`), {})).toEqual({
        refused: expect.stringContaining(name),
      })
      expect(render(() => new JinjaTemplate(`{% if false %}{{ ${expression} }}{% endif %}`), {})).toBe("")
    })
})

describe("a hostile template", () => {
  const run = (source: string, timeoutMs = 2000) =>
    new JinjaTemplate(source).render({ s: "x".repeat(100_000), n: 100_000 }, moment(now), {
      timeoutMs,
      maxLength: 2 ** 20,
    })

  for (const source of [
    "{{ 'a' * 10**9 }}",
    "{{ [0] * 10**9 }}",
    "{{ 10 ** (10 ** 8) }}",
    "{{ 2 ** 99999999 % 3 }}",
    "{{ range(10**9) }}",
    "{{ 'a'|center(10**9) }}",
    "{{ 'a'.ljust(10**9) }}",
    "{{ 'a'.zfill(10**9) }}",
    "{{ '\t'.expandtabs(10**9) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%.999999999f' % 1 }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ '{:.999999999f}'.format(1.5) }}",
    "{{ 1.5|round(10**9) }}{{ 15|round(-(10**9)) }}",
    "{{ s.replace('', s) }}",
    "{{ s.join(s) }}",
    "{{ s|indent(10**9) }}{{ 'a\nb'|indent(10**9) }}",
    "{{ [1]|batch(10**9, 0)|list }}",
    "{{ [1]|slice(10**9)|list }}",
    "{{ {'a': 1}|tojson(indent=10**9) }}",
    "{% set ns = namespace(x=1) %}{% for i in range(90) %}{% set ns.x = ns.x * ns.x + ns.x * 3 %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[s]) %}{% for i in range(10000) %}{% set ns.x = ns.x + [s.upper() ~ i] %}{% endfor %}",
    "{% for i in range(n) %}{{ s }}{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(x) %}{{ m([x]) }}{% endmacro %}{{ m(1) }}",
    `{{ ${"(".repeat(50_000)}1${")".repeat(50_000)} }}`,
    `{{ ${"not ".repeat(50_000)}1 }}`,
    `${"{% if 1 %}".repeat(20_000)}${"{% endif %}".repeat(20_000)}`,
  ])
    it(`fails: ${source.slice(0, 90)}`, () => expect(() => run(source)).toThrow(JinjaError))

  for (const source of [
    "{% for i in range(n) %}{% for j in range(n) %}{% endfor %}{% endfor %}",
    "{{ ('Σ' * 500000).title() }}",
    "{{ ('1' * 1000000)|int(0, 32) }}",
    "{% set ns = namespace(x=(1, 2)) %}{% for i in range(90) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
    "{% set ns = namespace(x=[], y=[]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "{% for i in range(n) %}{% if s.strip('y') == s.rstrip('z') %}{% endif %}{% endfor %}",
    "{% for i in range(n) %}{{ s.count('y') and '' }}{% endfor %}",
    "{% for i in range(n) %}{% if 'y' in s %}{% endif %}{% endfor %}",
    "{% set l = range(n)|list %}{% for i in l %}{% if -1 in l %}{% endif %}{% endfor %}",
    "{% for i in range(n) %}{% if s|length == 1 %}{% endif %}{% endfor %}",
    "{{ range(n)|map('string')|select('in', s)|list|length and range(n)|select('in', range(n))|list }}",
  ])
    it(`is stopped: ${source.slice(0, 90)}`, () => {
      expect(() => run(source, 100)).toThrow(JinjaError)
    })

  it("does much at once in little time", () => {
    const fast =
      "{{ ('a,' * 400000).rsplit(',')|length }} {{ (' a' * 400000).rsplit(none, 300000)|length }} {{ '{:0999999,}'.format(1)|length }}"
    expect(run(fast, 20_000)).toBe("400001 300001 999999")
  })

  for (const probe of ["constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "length"])
    for (const value of [
      "messages",
      "''",
      "1",
      "1.5",
      "none",
      "{}",
      "(1,)",
      "range",
      "range(1)",
      "namespace()",
      "loop",
      "dict",
    ])
      it(`finds no ${probe} of ${value}`, () => {
        const source = `{% for x in [1] %}{{ (${value}).${probe} is defined }}{{ (${value})['${probe}'] is defined }}{{ loop.index }}{% endfor %}`
        const expected = value === "loop" && probe === "length" ? "TrueTrue1" : "FalseFalse1"
        expect(new JinjaTemplate(source).render({ messages: [] }, moment(now), limits)).toBe(expected)
      })
})
