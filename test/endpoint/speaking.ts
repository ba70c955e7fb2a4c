import { join } from "node:path"
import { CompletionGenerator, type CompletionGeneratorSetup } from "../../src/chat/completion-generator.ts"
import { tokenText } from "../../src/chat/dialect.ts"
import { Transcript } from "../../src/chat/transcript.ts"
import { endpoint } from "../../src/endpoint/endpoint.ts"
import { Random } from "../../src/util/random.ts"
import { edit, open, tokenizerFolder } from "../tokenizer/scratch.ts"
import { type Manner, Scripted } from "./scripted.ts"

export interface Speaking
  extends Manner,
    Partial<Pick<CompletionGeneratorSetup, "observer" | "maxPositions" | "temperature" | "maxCompletionTokens">> {
  /** Changes the chat template. */
  readonly template?: (template: string) => string
  /** Folder of the tokenizer. Default: a new one. */
  readonly folder?: string
}

/** As templates of models that always think have it: the prompt ends within a thought. */
export const thinks = (template: string): string =>
  template.replaceAll("<|im_start|>assistant\\n'", "<|im_start|>assistant\\n<think>\\n'")

/** An endpoint whose model says these replies in turn, as a `fetch` for clients in this process. */
export async function speaking(completions: readonly string[], { template, folder: given, ...more }: Speaking = {}) {
  const folder = given ?? (await tokenizerFolder())
  if (template)
    edit(join(folder, "tokenizer_config.json"), (config) => {
      const before = config.chat_template
      config.chat_template = template(before)
      if (config.chat_template === before) throw new Error("The template is as it was")
    })
  const tokenizer = await open(folder)
  const policy = new Scripted(tokenizer, completions, more)
  const { observer, maxPositions, temperature = { value: 1, fixed: true } } = more
  const { maxCompletionTokens = { value: 512, fixed: false } } = more
  const voice = new CompletionGenerator({
    ...{ policy, codec: tokenizer, transcript: new Transcript(), temperature, maxCompletionTokens },
    ...{ observer, maxPositions },
    key: ({ call: { seed = 0 }, history, number, again }) => new Random(1).derive(history, number, again, seed).key,
  })
  const errors: unknown[] = []
  const answer = endpoint({
    find: (key) =>
      key === "secret" ? { generator: voice, models: ["policy"], textOf: tokenText(tokenizer) } : undefined,
    onError: (error) => errors.push(error),
  })
  const fetch = (input: string | URL | Request, init?: RequestInit) => answer(new Request(input, init))
  const [baseURL, apiKey] = ["http://gigpo.invalid/v1", "secret"]
  /** What is answered to a request of this body. */
  const post = (path: string, body: object, init: RequestInit = {}) =>
    fetch(`${baseURL}/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "policy", ...body }),
      ...init,
    })
  return { policy, tokenizer, voice, fetch, post, answer, errors, baseURL, apiKey }
}

// biome-ignore lint/suspicious/noExplicitAny: what clients are told is checked by what is expected of it
export type Answer = any

/** The data of server-sent events. */
export async function events(response: Response): Promise<Answer[]> {
  const text = await response.text()
  return text
    .split("\n\n")
    .filter((one) => one !== "")
    .map((one) => one.slice(one.indexOf("data: ") + 6))
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data))
}

/** What the chunks of a streamed chat completion say of each choice, put together. */
export function joined(chunks: readonly Answer[]) {
  const choices: Answer[] = []
  for (const { choices: parts } of chunks)
    for (const { index, delta, finish_reason, logprobs, token_ids } of parts) {
      choices[index] ??= { content: "", reasoning_content: "", tool_calls: [] }
      const choice = choices[index]
      for (const field of ["content", "reasoning_content"]) choice[field] += delta[field] ?? ""
      for (const { index: at, ...part } of delta.tool_calls ?? []) {
        const call = choice.tool_calls[at]
        if (call) call.function.arguments += part.function.arguments
        else choice.tool_calls[at] = { index: at, ...part }
      }
      if (finish_reason) Object.assign(choice, { finish_reason, logprobs, token_ids })
    }
  return choices
}
