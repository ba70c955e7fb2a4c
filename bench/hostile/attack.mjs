// Hostile client in a separate process: 32 concurrent requests, one kind of attack after the other, from another address of this machine.
// Reports the number of sent requests at the message to stop.
import { Agent, request } from "node:http"
import { connect } from "node:net"
import { getPriority, setPriority } from "node:os"

const { kind, url, key, attack } = JSON.parse(process.argv[2])
const localAddress = "127.0.0.2"
const agent = new Agent({ keepAlive: true, maxSockets: 32 })
const { port, hostname } = new URL(url)
setPriority(getPriority() + 5) // lower priority, because a remote client would not share the processor with the server
let sent = 0
process.on("message", () => process.send({ sent }, () => process.exit()))

const letters = "a".repeat(2 ** 20)
const chat = (body) => ({ path: "/chat/completions", body: JSON.stringify({ model: "policy", max_tokens: 900, messages: [{ role: "user", content: "Hi" }], ...body }) }) // biome-ignore format: one line
const syllables = ["ve", "lan", "or", "do", "ba", "ki", "mu", "ster"]
/** All words of the corpus, some repeatedly. */
const everyWord = Array.from({ length: 3000 }, (_, at) => [at % 8, (at >> 3) % 8, (at >> 6) % 8].map((i) => syllables[i]).join("")).join(" ") // biome-ignore format: one line
const attacks = {
  chat: [
    () => chat({ n: 64, stream: true, unread: undefined }),
    () => chat({ messages: [{ role: "user", content: letters }] }),
    () => chat({ messages: [{ role: "user", content: " ".repeat(2 ** 20) }] }),
    () => chat({ messages: [{ role: "user", content: "box ".repeat(900) }], max_tokens: 1 }),
    () => ({ path: "/chat/completions", body: `{"model":"policy","messages":[${"{},".repeat(2_000_000)}{}]}` }),
    () => ({
      path: "/chat/completions",
      body: `{"model":"policy","metadata":[${"{},".repeat(2_000_000)}{}],"messages":[]}`,
    }),
    () => {
      const oneOf = Array.from({ length: 5500 }, (_, at) => ({ const: `${sent}-${at}` }))
      return chat({
        response_format: { type: "json_schema", json_schema: { name: "x", strict: true, schema: { oneOf } } },
      })
    },
    () => ({ path: "/chat/completions", body: "[".repeat(1e6) }),
  ],
  engine: [
    () => ({ path: "/asample", body: sample(4096, 250) }),
    () => ({ path: "/asample", body: sample(64, 900) }),
    () => ({
      path: "/forward_backward",
      body: Buffer.alloc(2 ** 24, Buffer.from([0x1a, 0])),
      type: "application/x-protobuf",
    }),
    () => ({ path: "/create_session", body: "{}" }),
    () => ({ path: "/forward_backward", body: `{"x":[${"{},".repeat(2_000_000)}{}]}` }),
  ],
  retriever: [
    () => ({ path: "", body: JSON.stringify({ queries: Array(1024).fill("veveve lanveve orveve town"), topk: 9 }) }),
    () => ({
      path: "",
      body: JSON.stringify({ queries: Array(30).fill(everyWord), topk: 300 }),
    }),
    () => ({ path: "", body: JSON.stringify({ queries: Array(10).fill("town"), topk: 1000 }) }),
    () => ({ path: "", body: "[".repeat(1e6) }),
  ],
  view: [
    () => ({ path: "/api/runs", method: "GET" }),
    () => ({ path: `/api/runs/${run}/reports`, method: "GET" }),
    () => ({ path: `/api/runs/${run}/episodes`, method: "GET" }),
    () => ({ path: `/${"/".repeat(2000)}x`, method: "GET" }),
  ],
}

let run = ""
let session = {}
let seq = 0
const sample = (num_samples, max_tokens) =>
  JSON.stringify({ ...session, seq_id: seq++, prompt: { chunks: [{ type: "encoded_text", tokens: [1, 2, 3] }] }, num_samples, sampling_params: { max_tokens, stop: [] } }) // biome-ignore format: one line

/** Sends a request. Every fourth response is left unread for 5 s. */
async function send({ path, body, method = "POST", type = "application/json" }, read = sent % 4 > 0) {
  sent++
  return await new Promise((resolve) => {
    const headers = { "content-type": type, ...(key && { authorization: `Bearer ${key}` }) }
    const out = request(`${url}${path}`, { method, agent, headers, localAddress }, (response) => {
      let text = ""
      response.on("end", () => resolve(text)).on("close", () => resolve(text))
      response.on("error", () => resolve(text))
      if (read) response.setEncoding("utf8").on("data", (chunk) => (text = (text + chunk).slice(-10_000)))
      else setTimeout(() => response.destroy(), 5000)
    })
    out.on("error", () => resolve(""))
    out.setTimeout(20_000, () => out.destroy())
    out.end(body)
  })
}

async function flood() {
  const open = new Set()
  const heads = ["", "GET / HT", `GET /a${"/".repeat(16_000)}x HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`, `POST / HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-length: 9\r\n\r\n1`] // biome-ignore format: one line
  for (;;) {
    for (let i = 0; i < 20; i++) {
      const socket = connect({ port: Number(port), host: hostname, localAddress })
      open.add(socket)
      socket
        .on("error", () => {})
        .on("close", () => open.delete(socket))
        .resume()
      socket.write(heads[sent++ % heads.length].repeat(sent % 8 === 2 ? 20 : 1))
    }
    await new Promise((resolve) => setTimeout(resolve, open.size > 4000 ? 200 : 10))
  }
}

/** Computes without requests, to separate the cost of a busy processor from that of requests. */
async function burn() {
  for (;;) {
    for (const until = performance.now() + 10; performance.now() < until; );
    await new Promise(setImmediate)
  }
}

if (kind === "flood") await flood()
if (kind === "busy") await burn()
if (kind === "engine") {
  const { session_id } = JSON.parse(await send({ path: "/create_session", body: "{}" }, true))
  const asked = { session_id, base_model: "line", sampling_session_seq_id: 0 }
  const { sampling_session_id } = JSON.parse(
    await send({ path: "/create_sampling_session", body: JSON.stringify(asked) }, true),
  )
  session = { sampling_session_id }
}
const chosen = attack === undefined ? attacks[kind] : [attacks[kind][attack]]
if (kind === "view") run = JSON.parse(await send({ path: "/api/runs", method: "GET" }, true))[0].id
await Promise.all(
  Array.from({ length: 32 }, async (_, worker) => {
    for (let turn = worker; ; turn++) {
      await send(chosen[turn % chosen.length]())
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }),
)
