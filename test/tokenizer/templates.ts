import { join } from "node:path"
import type { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { corpus, edit, open, tokenizerFolder } from "./scratch.ts"

// Chat templates in the manner of model families, each with the constructs that matter for what they render.

const generation = (header: string) => `{% if add_generation_prompt %}{{ '${header}' }}{% endif %}`

/** Plain ChatML: messages alone. */
export const chatMl = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}${generation("<|im_start|>assistant\\n")}`

/** ChatML with a system message of its own if there is none. */
export const smol = `{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nBe of help.<|im_end|>\\n' }}{% endif %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>' + '\\n' }}{% endfor %}${generation("<|im_start|>assistant\\n")}`

/** Tools in tags, calls as JSON, results within a user's turn; thoughts before the last user's message are dropped. */
export const qwen = (thinks: boolean) => `{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- '# Tools\\n\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(last=-1) %}
{%- for message in messages %}
    {%- if message.role == 'user' and not (message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.last = loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == 'assistant' %}
        {%- set content = message.content %}
        ${
          thinks
            ? `{%- set reasoning = '' %}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].split('<think>')[-1] %}
            {%- set content = content.split('</think>')[-1] %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or reasoning) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning + '\\n</think>\\n\\n' + content }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}`
            : "{{- '<|im_start|>' + message.role + '\\n' + content }}"
        }
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {{- tool_call.arguments | tojson }}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.first or (messages[loop.index0 - 1].role != 'tool') %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != 'tool') %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
${generation("<|im_start|>assistant\\n")}`

/** Headers, contents stripped, tools in the first user's turn, one call in place of a content, results as JSON. */
export const llama = `{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = '' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}
{{- system_message }}
{{- '<|eot_id|>' }}
{%- if tools is not none %}
    {%- set first = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\nRespond with JSON {"name": n, "parameters": p}.\\n\\n' }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- '\\n\\n' }}
    {%- endfor %}
    {{- first + '<|eot_id|>' }}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception('one call at a time') }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- '}' }}
        {{- '<|eot_id|>' }}
    {%- elif message.role == 'tool' %}
        {{- '<|start_header_id|>tool<|end_header_id|>\\n\\n' }}
        {{- message.content | tojson }}
        {{- '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
${generation("<|start_header_id|>assistant<|end_header_id|>\\n\\n")}`

/** The system's message stands within the first turn of the user; calls as a list, which take the content's place. */
export const mistral = `{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] + '\\n\\n' %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set system_message = '' %}
    {%- set rest = messages %}
{%- endif %}
{%- if tools %}{{- '[AVAILABLE_TOOLS] ' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{%- endif %}
{%- for message in rest %}
    {%- if message['role'] == 'user' %}
        {{- '[INST] ' + (system_message if loop.first else '') + message['content'] + '[/INST]' }}
    {%- elif message['tool_calls'] is defined and message['tool_calls'] %}
        {{- '[TOOL_CALLS] [' }}
        {%- for tool_call in message['tool_calls'] %}
            {{- '{"name": "' + tool_call.function.name + '", "arguments": ' + (tool_call.function.arguments | tojson) + ', "id": "' + tool_call.id + '"}' }}
        {%- endfor %}
        {{- ']</s>' }}
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' + message['content'] | trim + '</s>' }}
    {%- elif message['role'] == 'tool' %}
        {{- '[TOOL_RESULTS] {"content": ' + message['content'] + '}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception('no such role') }}
    {%- endif %}
{%- endfor %}`

/** Marks made of roles. */
export const phi = `{% for message in messages %}{{ '<|' + message['role'] + '|>' + '\\n' + message['content'] + '<|end|>' + '\\n' }}{% endfor %}${generation("<|assistant|>\\n")}`

/** Tags named by tools and arguments. */
export const xml = `{% for tool in tools or [] %}{{ '<' + tool.function.name + '>' + tool.function.description + '\\n' }}{% for key in tool.function.parameters.properties %}{{ key + '\\n' }}{% endfor %}{% endfor %}{% for message in messages %}{{ '<|im_start|>' + message.role + (' ' + message.name if message.name else '') + '\\n' + message.content }}{% for call in message.tool_calls or [] %}{{ '<' + call.function.name + '>' }}{% for key, value in call.function.arguments | items %}{{ '<' + key + '>' + (value | string) + '</' + key + '>' }}{% endfor %}{{ '</' + call.function.name + '>' }}{% endfor %}{{ '<|im_end|>\\n' }}{% endfor %}${generation("<|im_start|>assistant\\n")}`

export const families: Readonly<Record<string, string>> = {
  "plain ChatML": chatMl,
  "SmolLM2's": smol,
  "Qwen2.5's": qwen(false),
  "Qwen3's": qwen(true),
  "Llama 3's": llama,
  "Mistral's": mistral,
  "Phi's": phi,
  "tags of tools": xml,
}

const special = [
  ...["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "[INST]", "[/INST]", "</s>"],
  ...["[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"],
]
const tags = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<to"]
/** Added tokens that are ordinary text. */
export const words = ["zebra", "    "]

/** Text without tags: no mark is a word of the vocabulary. */
const untagged = corpus.map((text) => text.replaceAll(/<\/?\w+>/g, ""))

/** A tokenizer with the added tokens of all families and one of their templates. */
export async function family(template: unknown): Promise<Tokenizer> {
  const folder = await tokenizerFolder(untagged)
  edit(join(folder, "tokenizer.json"), (json) => {
    const from = Math.max(...json.added_tokens.map(({ id }: { id: number }) => id)) + 1
    const plain = [...tags, ...words]
    json.added_tokens.push(
      ...[...special, ...plain].map((content, index) => ({
        ...{ id: from + index, content, single_word: false, lstrip: false, rstrip: false, normalized: false },
        special: !plain.includes(content),
      })),
    )
  })
  edit(join(folder, "tokenizer_config.json"), (config) => {
    config.chat_template = template
  })
  return await open(folder)
}
