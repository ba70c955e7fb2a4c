import { expect, it } from "vitest"
import { agentLoop } from "../../src/agents/agent.ts"
import { openGateway } from "../../src/agents/gateway.ts"
import { imagePlace } from "../../src/environment/picture.ts"
import { encodePng } from "../../src/images/png.ts"
import type { ModelImage } from "../../src/native/model.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { Random } from "../../src/util/random.ts"
import { pattern } from "../images/pattern.ts"
import { open } from "../tokenizer/scratch.ts"
import { visionFolder } from "../tokenizer/vision-folder.ts"
import { askAll } from "./ask.ts"
import { Scripted } from "./scripted.ts"
import { type Answer, speaking } from "./speaking.ts"

const base64 = async (width: number) => Buffer.from((await encodePng(pattern(width, 60))).bytes).toString("base64")
const [small, wide] = [await base64(60), await base64(120)]
const url = (data: string) => `data:image/png;base64,${data}`

/** The same message in each format: "Look:", an image, "Where?". */
const requests: Readonly<Record<string, [path: string, body: (data: string) => object]>> = {
  "OpenAI's chat completions": [
    "chat/completions",
    (data) => ({
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Look:" },
            { type: "image_url", image_url: { url: url(data), detail: "auto" } },
            { type: "text", text: "Where?" },
          ],
        },
      ],
    }),
  ],
  "OpenAI's responses": [
    "responses",
    (data) => ({
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "Look:" },
            { type: "input_image", image_url: url(data), detail: "auto" },
            { type: "input_text", text: "Where?" },
          ],
        },
      ],
    }),
  ],
  "Anthropic's messages": [
    "messages",
    (data) => ({
      max_tokens: 9,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Look:" },
            { type: "image", source: { type: "base64", media_type: "image/png", data } },
            { type: "text", text: "Where?" },
          ],
        },
      ],
    }),
  ],
}

it.each(Object.entries(requests))("reads images in the format of %s", async (_, [path, body]) => {
  const { post, policy, tokenizer } = await speaking(["Here."], { folder: await visionFolder("Qwen2.5-VL") })
  for (const data of [small, wide]) expect((await post(path, body(data))).status).toBe(200)
  const [first, second] = policy.requests.map(({ prompt, attachments }) => ({
    text: tokenizer.decode(prompt),
    grids: (attachments as ModelImage[]).map(({ grid }) => grid),
  }))
  const marked = (count: number) =>
    `Look:<|vision_start|>${"<|image_pad|>".repeat(count)}<|vision_end|>Where?<|im_end|>`
  expect(first!.text).toContain(marked(4))
  expect(second!.text).toContain(marked(8))
  expect([first!.grids, second!.grids]).toEqual([[[1, 4, 4]], [[1, 4, 8]]])
})

it("reads images in the format of Ollama, before the text", async () => {
  const { post, policy, tokenizer } = await speaking(["Here."], { folder: await visionFolder("Qwen2.5-VL") })
  expect((await post("../api/chat", { messages: [{ role: "user", content: "Where?", images: [small] }] })).status).toBe(
    200,
  )
  expect((await post("../api/generate", { prompt: "Where?", images: [small] })).status).toBe(200)
  for (const { prompt, attachments } of policy.requests) {
    expect(tokenizer.decode(prompt)).toContain("<|vision_end|>Where?<|im_end|>")
    expect(attachments).toHaveLength(1)
  }
})

it("the result of a tool can be an image", async () => {
  const { post, policy, tokenizer } = await speaking(["Here."], { folder: await visionFolder("Qwen2.5-VL") })
  const source = { type: "base64", media_type: "image/png", data: small }
  const call = { type: "tool_use", id: "a", name: "look", input: { at: "it" } }
  const messages = [
    { role: "user", content: "Go." },
    { role: "assistant", content: [call] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: [{ type: "image", source }] }] },
  ]
  expect((await post("messages", { max_tokens: 9, messages })).status).toBe(200)
  const [{ prompt, attachments }] = policy.requests as [(typeof policy.requests)[0]]
  expect(tokenizer.decode(prompt)).toMatch(/<\|im_start\|>tool\n<\|vision_start\|>(<\|image_pad\|>){4}<\|vision_end\|>/)
  expect(attachments).toHaveLength(1)
})

it.each(Object.entries(requests))(
  "a text-only model rejects images by name, in the format of %s",
  async (_, [path, body]) => {
    const { post, policy } = await speaking(["Here."])
    const response = await post(path, body(small))
    expect(response.status).toBe(400)
    const { error }: Answer = await response.json()
    expect(error.message).toMatch(/^messages\[0\] has an image, but the model reads text only: send text/)
    expect(policy.requests).toEqual([])
  },
)

it.each<[string, RegExp]>([
  ["http://127.0.0.1/a.png", /must be a data URL .*not fetched from addresses/],
  ["data:image/png,abc", /in base64/],
  ["data:image/png;base64,abc", /not valid base64/],
  [`data:image/gif;base64,${Buffer.from("GIF89a").toString("base64")}`, /a GIF file; convert it to PNG or JPEG/],
])("rejects the URL %s", async (url, message) => {
  const { post, policy } = await speaking(["Here."], { folder: await visionFolder("Qwen2.5-VL") })
  const content = [{ type: "image_url", image_url: { url } }]
  const response = await post("chat/completions", { messages: [{ role: "user", content }] })
  expect(response.status).toBe(400)
  const { error }: Answer = await response.json()
  expect(error).toMatchObject({
    param: "messages[0].content[0].image_url.url",
    message: expect.stringMatching(message),
  })
  expect(policy.requests).toEqual([])
})

it("rejects a corrupt image, and images where the model cannot see them", async () => {
  const { post, policy } = await speaking(["Here."], { folder: await visionFolder("Qwen2.5-VL") })
  const part = (data: string) => ({ type: "image_url", image_url: { url: url(data) } })
  const ask = async (role: string, data: string) => {
    const messages = [{ role, content: [part(data)] }]
    const response = await post("chat/completions", { messages })
    return [response.status, ((await response.json()) as Answer).error]
  }
  const cut = Buffer.from(small, "base64").subarray(0, 300).toString("base64")
  expect(await ask("user", cut)).toEqual([
    400,
    expect.objectContaining({ message: expect.stringMatching(/truncated/) }),
  ])
  expect(await ask("system", small)).toEqual([400, expect.objectContaining({ param: "messages[0].content[0].type" })])
  expect(policy.requests).toEqual([])
})

it("a call continues an earlier one with equal images, and not with others", async () => {
  const { post, policy } = await speaking(["Here.", "There."], { folder: await visionFolder("Qwen2.5-VL") })
  const [path, body] = requests["OpenAI's chat completions"]!
  const chat = body(small) as { messages: { content: object[] }[] }
  await post(path, chat)
  const [, image, ...rest] = chat.messages[0]!.content
  const next = (image: object) => ({
    messages: [
      { role: "user", content: [{ type: "text", text: "Look:" }, image, ...rest] },
      { role: "assistant", content: "Here." },
      { role: "user", content: "Sure?" },
    ],
  })
  await post(path, next(image!))
  await post(path, next({ type: "image_url", image_url: { url: url(wide) } }))
  const [first, same, other] = policy.requests
  const sampled = [...first!.prompt, ...policy.tokens("Here.")]
  expect([...same!.prompt].slice(0, sampled.length)).toEqual(sampled)
  expect(same!.attachments).toEqual(first!.attachments)
  expect(other!.prompt.length).toBe(same!.prompt.length + 4)
  expect((other!.attachments as ModelImage[])[0]!.grid).toEqual([1, 4, 8])
})

it("a sampled image token is left out of later prompts, in which it would be the place of an image", async () => {
  const completions = ["He<|image_pad|>re.", "There."]
  const { post, policy } = await speaking(completions, { folder: await visionFolder("Qwen2.5-VL") })
  const [path, body] = requests["OpenAI's chat completions"]!
  const { messages } = body(small) as { messages: { content: object[] }[] }
  const { choices } = (await (await post(path, { messages })).json()) as { choices: [{ message: object }] }
  await post(path, { messages: [...messages, choices[0].message, { role: "user", content: "Sure?" }] })
  const [first, second] = policy.requests
  const [imageToken] = policy.tokens("<|image_pad|>")
  const sampled = policy.tokens(completions[0]!)
  expect(sampled).toContain(imageToken)
  const before = [...first!.prompt, ...sampled.filter((token) => token !== imageToken)]
  expect([...second!.prompt].slice(0, before.length)).toEqual(before)
  expect(second!.prompt.filter((token) => token === imageToken)).toHaveLength(4)
  expect(second!.attachments).toEqual(first!.attachments)
})

it("an agent's steps have the images, exact prompts and anchors of their own", async () => {
  const tokenizer = await open(await visionFolder("Qwen2.5-VL"))
  await using gateway = await openGateway()
  const [, body] = requests["OpenAI's chat completions"]!
  const policy = new Scripted(tokenizer, ["Here."])
  const { groups } = await rollout({
    ...{
      policy,
      tokenizer,
      tasks: [0],
      groupSize: 1,
      concurrency: 1,
      temperature: 1,
      maxCompletionTokens: 64,
      maxSteps: 4,
    },
    ...{ maxPositions: 1024, environmentTimeout: 10, random: new Random(1) },
    agentLoop: agentLoop(async (_task, context) => {
      for (const data of [small, wide, small]) await askAll(context, (body(data) as { messages: never }).messages)
      return { reward: 1 }
    }, gateway),
  })
  const [{ steps, error }] = groups[0]!.episodes as [(typeof groups)[0]["episodes"][0]]
  expect(error).toBeUndefined()
  expect(steps.map(({ prompt }) => [...prompt])).toEqual(policy.requests.map(({ prompt }) => [...prompt]))
  expect(steps.map(({ attachments }) => attachments)).toEqual(policy.requests.map(({ attachments }) => attachments))
  expect(steps.map(({ observation }) => observation.text)).toEqual(Array(3).fill(`Look:${imagePlace}Where?`))
  const files = steps.map(({ observation }) => Buffer.from(observation.images![0]!.bytes).toString("base64"))
  expect(files).toEqual([small, wide, small])
  const [one, two, three] = steps.map(({ observation }) => observation.anchor)
  expect(three).toBe(one)
  expect(two).not.toBe(one)
})
