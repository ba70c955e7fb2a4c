// The agent of the README on OpenAI's client: three rooms in any order, each with its own door.
import OpenAI from "../../../../examples/agents/node_modules/openai/index.mjs"

const doors = { red: "a", green: "b", blue: "c" }
const schema = { type: "object", properties: { door: { enum: ["a", "b", "c"] } }, required: ["door"] }
const response_format = { type: "json_schema", json_schema: { name: "choice", schema } }

export default async function agent(rooms, { openai, model, signal, reward }) {
  const client = new OpenAI({ ...openai, maxRetries: 0 })
  const messages = []
  for (const room of rooms) {
    messages.push({ role: "user", content: `You are in the ${room} room. Which door?` })
    const { choices } = await client.chat.completions.create({ model, messages, response_format }, { signal })
    const { message } = choices[0]
    messages.push(message)
    if (JSON.parse(message.content).door !== doors[room]) return { reward: 0, success: false }
    reward(1)
  }
  return { reward: 0, success: true }
}
