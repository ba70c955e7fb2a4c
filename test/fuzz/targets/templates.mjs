// Chat templates, which come with models, within their limits of time and length.
import { readdirSync, readFileSync } from "node:fs"
import { ChatTemplate } from "../../../modules/tokenizer/chat-template.js"

const own = [
  "{%- for m in messages -%}<|{{ m.role }}|>{{ m['content'] | trim | upper }}{% if loop.last %}{{ '!' * 3 }}{% endif %}{%- endfor -%}",
  "{% macro show(x, n=2) %}{{ x | tojson(indent=n) }}{% endmacro %}{% set ns = namespace(i=0) %}{% for t in tools %}{% set ns.i = ns.i + 1 %}{{ show(t) }}{{ ns.i }}{% endfor %}",
  "{{ messages | map(attribute='content') | join(', ') }}{{ '%s is %05.2f' | format('pi', 3.14) }}{{ range(10)[::-2] | list }}{{ strftime_now('%Y-%m-%d') }}",
  "{{ messages[0].content.split(' ')[-1].replace('o', '0') | indent(4, true) }}{{ (2 ** 10) // 3 % 7 }}{{ {'a': [1, 2]}.items() | list }}",
]

const variables = {
  messages: [
    { role: "system", content: "You are a tool." },
    { role: "user", content: "Say hello to the world" },
    {
      role: "assistant",
      content: "hello",
      tool_calls: [{ type: "function", function: { name: "say", arguments: { a: 1 } } }],
    },
  ],
  tools: [{ type: "function", function: { name: "say", description: "Says it.", parameters: { type: "object" } } }],
  ...{ add_generation_prompt: true, bos_token: "<s>", eos_token: "</s>" },
}

export async function prepare() {
  const folder = new URL("../../tokenizer/templates/", import.meta.url)
  const shipped = readdirSync(folder).filter((name) => /\.jinja$/.test(name))
  const texts = [...own, ...shipped.map((name) => readFileSync(new URL(name, folder), "utf8"))]
  return {
    seeds: texts.map((text, at) => ({ name: String(at), bytes: Buffer.from(text) })),
    // Some need another kind of messages or tools.
    mayRefuse: ({ name }) => Number(name) >= own.length,
    async run({ bytes }) {
      const template = new ChatTemplate(bytes.toString("utf8"), "model", { timeoutMs: 250 })
      await template.parse()
      await template.render(variables)
      await template.dispose()
    },
  }
}
