// Requests over sockets to the servers of the gateway, a retriever, the view and the engine: whole requests, and bodies alone.
import { mkdirSync } from "node:fs"
import { createConnection } from "node:net"
import { dirname, join } from "node:path"
import { CompletionGenerator } from "../../../modules/chat/completion-generator.js"
import { tokenText } from "../../../modules/chat/dialect.js"
import { Transcript } from "../../../modules/chat/transcript.js"
import { tinkerServer } from "../../../modules/engine-server/tinker-server.js"
import { openGateway } from "../../../modules/entries/agents.js"
import { serveRetriever } from "../../../modules/entries/environments/search.js"
import { NativePolicy, Tokenizer } from "../../../modules/entries/index.js"
import { memoryCorpus } from "../../../modules/environment/search/corpus.js"
import { listen } from "../../../modules/http/listen.js"
import { Random } from "../../../modules/util/random.js"
import { openView } from "../../../modules/view/serve/view.js"
import { requests, withHead } from "./requests.mjs"
import { recordedRun } from "./runs.mjs"

const engineKey = "tml-fuzz-0123456789abcdef"
const small = { device: "cpu", threads: 1, kvCacheBytes: 2 ** 20, microBatchTokens: 64 }
/** Milliseconds without a byte until a connection is left. */
const longest = 300

async function servers(scratch, onError) {
  const { run, model } = await recordedRun(dirname(scratch))
  const tokenizer = await Tokenizer.open(model)
  const policy = await NativePolicy.open(model, small)
  const voice = new CompletionGenerator({
    ...{ policy, codec: tokenizer, transcript: new Transcript(), maxPositions: 512 },
    ...{ temperature: { value: 1, fixed: false }, maxCompletionTokens: { value: 8, fixed: true } },
    key: ({ history, number, again }) => new Random(1).derive(history, number, again).key,
  })
  const gateway = await openGateway({ onError })
  const episode = { step() {}, end() {} }
  const { apiKey, controlKey } = gateway.open(
    { generator: voice, models: ["policy"], textOf: tokenText(tokenizer) },
    episode,
  )
  const corpus = await memoryCorpus([
    { id: "1", contents: "Paris is a town." },
    { id: "2", contents: "Rome is another." },
  ])
  const retriever = await serveRetriever({ corpus, port: 0, onError })
  const view = await openView([run], { onError })
  mkdirSync(join(scratch, "kept"), { recursive: true })
  const engine = tinkerServer({
    ...{
      model: "tiny",
      maxPositions: 256,
      stopTokens: [],
      key: engineKey,
      models: 2,
      checkpoints: join(scratch, "kept"),
      onError,
    },
    open: async ({ rank, seed }) =>
      await NativePolicy.open(model, { ...small, ...(rank > 0 && { lora: { rank, alpha: 32, seed } }) }),
    openFrozen: async (folder = model) => await NativePolicy.open(folder, { ...small, base: model, training: false }),
  })
  const engineHttp = await listen((request) => engine.answer(request), { keys: engine.keys })
  return {
    gateway: { url: gateway.baseURL, keys: { KEY: apiKey, CONTROL: controlKey } },
    retriever: { url: retriever.url, keys: {} },
    view: { url: view.url, keys: { KEY: new URLSearchParams(new URL(view.url).hash.slice(3)).get("token") } },
    engine: { url: engineHttp.url, keys: { KEY: engineKey, ...(await openedModel(engineHttp.url)) } },
  }
}

/** A session and a model of it. */
async function openedModel(url) {
  const headers = { "x-api-key": engineKey, "content-type": "application/json" }
  const post = async (path, body) =>
    await (await fetch(`${url}/api/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) })).json()
  const { session_id } = await post("create_session", {})
  const lora_config = { rank: 2, seed: 1 }
  const { request_id } = await post("create_model", { session_id, model_seq_id: 7, base_model: "tiny", lora_config })
  const { model_id } = await post("retrieve_future", { request_id })
  if (model_id === undefined) throw new Error("The engine has opened no model")
  const { sampling_session_id } = await post("create_sampling_session", { session_id, base_model: "tiny" })
  return { SESSION: session_id, MODEL: model_id, SAMPLING: sampling_session_id }
}

/** What a server answers to these bytes; a request that has no end gets no answer. */
function exchange(url, bytes) {
  const { port } = new URL(url)
  return new Promise((resolve) => {
    const parts = []
    const socket = createConnection({ port: Number(port), host: "127.0.0.1" })
    const end = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(Buffer.concat(parts).toString("latin1"))
    }
    const timer = setTimeout(end, longest)
    socket.on("data", (part) => {
      parts.push(part)
      timer.refresh()
    })
    socket.on("end", end)
    socket.on("error", end)
    socket.on("close", end)
    socket.write(bytes)
  })
}

export async function prepare(scratch) {
  const faults = []
  const all = await servers(scratch, (error) => faults.push(error))
  const filled = (server, text) => {
    const { url, keys } = all[server]
    const known = { HOST: new URL(url).host, ...keys }
    return text.replace(/@([A-Z]+)@/g, (found, name) => known[name] ?? found)
  }
  return {
    seeds: requests(filled),
    async run(input) {
      const answer = await exchange(all[input.server].url, withHead(input))
      const isWrong = faults.some((error) => error?.name !== "GigpoError" || error.code === "INTERNAL")
      const [fault] = faults.splice(0)
      if (isWrong) throw fault
      const status = /^HTTP\/1\.1 (5\d\d)/.exec(answer)?.[1]
      if (status !== undefined && status !== "503")
        throw new Error(`${input.name} was answered ${status}: ${answer.slice(0, 400)}`)
    },
  }
}
