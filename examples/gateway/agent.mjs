// An agent as a program of its own, which knows nothing of gigpo: `gigpo gateway demo/config.yaml -- node agent.mjs` starts it once an
// episode. Any language will do that can send JSON over HTTP.
const { OPENAI_BASE_URL, OPENAI_API_KEY, GIGPO_MODEL: model, GIGPO_TASK } = process.env

async function post(path, body) {
  const headers = { authorization: `Bearer ${OPENAI_API_KEY}`, "content-type": "application/json" }
  const response = await fetch(OPENAI_BASE_URL + path, { method: "POST", headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(await response.text())
  return await response.json()
}

const { from, to } = JSON.parse(GIGPO_TASK)
let at = from
for (let turn = 0; at !== to && turn < 8; turn++) {
  const state = `${at} to ${to}`
  await post("/gigpo/step", { anchor: state }) // what GiGPO compares; without it, it would be the last message
  const { choices } = await post("/chat/completions", { model, messages: [{ role: "user", content: state }] })
  const reply = choices[0].message.content
  at = Math.min(Math.max(at + (reply === "+" ? 1 : reply === "-" ? -1 : 0), 0), 6)
}
console.log(JSON.stringify({ reward: Number(at === to), success: at === to })) // the last line is the reward
