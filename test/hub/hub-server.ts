import { createHash, randomBytes } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** A repository that the server has. */
export interface Repository {
  readonly files: Readonly<Record<string, Buffer | string>>
  /** Branches and tags, with their commits; all have the same files. Default: main. */
  readonly revisions?: Readonly<Record<string, string>>
  readonly access?: "open" | "gated" | "private"
  /** The listing tells paths alone, as that of some mirrors. */
  readonly bare?: boolean
  /** Replaces the listing. */
  readonly listing?: (usual: Listing) => unknown
}

interface Listing {
  readonly sha: string
  readonly siblings: Record<string, unknown>[]
}

/** A request that was made. */
export interface Asked {
  /** Of the Hub, or of the store with large files, which is another host. */
  readonly to: "hub" | "store"
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
}

/** What goes wrong with one request. */
export type Fault = "cut" | "500" | "503" | "429" | "short" | "half" | "wrong" | "long" | "stall" | "404"

export interface Hub extends AsyncDisposable {
  readonly url: string
  /** Address of the store. */
  readonly store: string
  readonly asked: Asked[]
  /** Decides what goes wrong with a request; told its index, from 0. */
  fault: ((asked: Asked, index: number) => Fault | undefined) | undefined
  readonly repositories: Record<string, Repository>
  /** Header Retry-After of failing answers. */
  retryAfter: string | undefined
  /** Where large files are redirected to; default: the store. */
  redirect: ((path: string) => string) | undefined
}

/** Larger files are in the store, and known by SHA-256. */
const large = 1000
export const commit = "c".repeat(40)
export const token = "hf_0123456789abcdef"

export const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex")
export const gitDigest = (bytes: Buffer): string =>
  createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex")
export const blobOf = (bytes: Buffer): string => (bytes.length > large ? sha256(bytes) : gitDigest(bytes))

/** Files of a model that no engine can open, with weights of so many bytes. */
export function someModel(bytes = 300_000): Record<string, Buffer> {
  return {
    "config.json": Buffer.from('{"model_type":"none"}'),
    "tokenizer.json": randomBytes(2000),
    "tokenizer_config.json": Buffer.from("{}"),
    "model.safetensors": randomBytes(bytes),
    "README.md": Buffer.from("not needed"),
    "pytorch_model.bin": randomBytes(1500),
    "onnx/model.onnx": randomBytes(1500),
  }
}

/** The Hugging Face Hub in small: its API, and a store of large files at another address. */
export async function startHub(repositories: Record<string, Repository>): Promise<Hub> {
  const asked: Asked[] = []
  let store = ""
  const hub: Hub = {
    ...{ url: "", store: "", asked, fault: undefined, repositories, retryAfter: undefined, redirect: undefined },
    [Symbol.asyncDispose]: async () => {
      for (const server of servers) {
        server.closeAllConnections()
        server.close()
      }
    },
  }
  const handled =
    (to: Asked["to"], answer: typeof answerHub) => (request: IncomingMessage, response: ServerResponse) => {
      const one = { to, method: request.method!, path: request.url!, headers: request.headers }
      asked.push(one)
      const fault = hub.fault?.(one, asked.length - 1)
      if (fault === "cut") return void request.socket.destroy()
      const headers = hub.retryAfter === undefined ? {} : { "retry-after": hub.retryAfter }
      if (fault !== undefined && /^\d+$/.test(fault)) return void response.writeHead(Number(fault), headers).end("no")
      answer(request, new Faulty(response, fault))
    }

  function answerHub(request: IncomingMessage, response: Faulty): unknown {
    const url = new URL(request.url!, "http://hub")
    const path = decodeURIComponent(url.pathname)
    const [, api, kind, given] = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/(.+)$/.exec(path) ?? []
    const [, plain, of, file] = /^\/([^/]+\/[^/]+)\/resolve\/(.+?)\/(.+)$/.exec(path) ?? []
    const name = api ?? plain ?? ""
    const repository = hub.repositories[name]
    const bearer = request.headers.authorization
    const deny = (status: number, code: string, message = "") =>
      response.send(status, "no", { "x-error-code": code, "x-error-message": message })
    if (bearer !== undefined && bearer !== `Bearer ${token}`)
      return deny(401, "", "Invalid credentials in Authorization header")
    if (!repository || (repository.access === "private" && bearer === undefined))
      return bearer === undefined
        ? deny(401, "RepoNotFound", "Invalid username or password.")
        : deny(404, "RepoNotFound")
    if (repository.access === "gated" && plain !== undefined && bearer === undefined) return deny(401, "GatedRepo")
    const revisions = repository.revisions ?? { main: commit }
    const revision = given ?? of!
    const sha = Object.values(revisions).includes(revision) ? revision : revisions[revision]
    if (sha === undefined) return deny(404, "RevisionNotFound")
    const files = Object.entries(repository.files).map(([path, content]) => [path, Buffer.from(content)] as const)
    if (kind === "revision") {
      const siblings = files.map(([path, bytes]) => listed(path, bytes, repository.bare === true))
      const usual = { id: name, modelId: name, private: false, gated: false, tags: [], sha, siblings }
      const listing = repository.listing?.(usual) ?? usual
      return response.send(200, typeof listing === "string" ? listing : JSON.stringify(listing), {
        "content-type": "application/json",
      })
    }
    if (kind === "tree")
      return response.send(200, JSON.stringify(files.map(([path, bytes]) => inTree(path, bytes))), {
        "content-type": "application/json",
      })
    const bytes = files.find(([path]) => path === file)?.[1]
    if (!bytes) return deny(404, "EntryNotFound")
    const headers = { "x-repo-commit": sha, "accept-ranges": "bytes" }
    if (bytes.length <= large) return sendFile(request, response, bytes, { ...headers, etag: `"${gitDigest(bytes)}"` })
    const digest = sha256(bytes)
    return response.send(302, "", {
      ...headers,
      location: hub.redirect?.(digest) ?? `${store}/${digest}?signature=abc`,
      "x-linked-size": String(bytes.length),
      "x-linked-etag": `"${digest}"`,
      "x-xet-hash": sha256(digest),
      link: `<${hub.url}/api/models/${name}/xet-read-token/${sha}>; rel="xet-auth", <${store}/v1/reconstructions/${digest}>; rel="xet-reconstruction-info"`,
    })
  }

  function answerStore(request: IncomingMessage, response: Faulty): unknown {
    const digest = new URL(request.url!, "http://store").pathname.slice(1)
    const all = Object.values(hub.repositories).flatMap(({ files }) =>
      Object.values(files).map((one) => Buffer.from(one)),
    )
    const bytes = all.find((one) => one.length > large && sha256(one) === digest)
    if (!bytes) return response.send(404, "no", {})
    return sendFile(request, response, bytes, { etag: '"of the store"', "accept-ranges": "bytes" })
  }

  const servers: Server[] = [createServer(handled("hub", answerHub)), createServer(handled("store", answerStore))]
  const [hubPort, storePort] = await Promise.all(
    servers.map(async (server) => {
      await once(server.listen(0, "127.0.0.1"), "listening")
      return (server.address() as AddressInfo).port
    }),
  )
  store = `http://127.0.0.1:${storePort}`
  return Object.assign(hub, { url: `http://localhost:${hubPort}`, store })
}

function listed(path: string, bytes: Buffer, bare: boolean): Record<string, unknown> {
  if (bare) return { rfilename: path }
  const lfs = bytes.length > large && { lfs: { sha256: sha256(bytes), size: bytes.length, pointerSize: 130 } }
  return { rfilename: path, size: bytes.length, blobId: gitDigest(bytes), ...lfs }
}

function inTree(path: string, bytes: Buffer): Record<string, unknown> {
  const lfs = bytes.length > large && { lfs: { oid: sha256(bytes), size: bytes.length, pointerSize: 130 } }
  return { type: "file", path, size: bytes.length, oid: gitDigest(bytes), ...lfs }
}

function sendFile(request: IncomingMessage, response: Faulty, bytes: Buffer, headers: Record<string, string>): unknown {
  const [, from] = /^bytes=(\d+)-/.exec(request.headers.range ?? "") ?? []
  if (from === undefined)
    return response.send(200, request.method === "HEAD" ? "" : bytes, {
      ...headers,
      "content-length": String(bytes.length),
    })
  const start = Number(from)
  if (start >= bytes.length) return response.send(416, "", { "content-range": `bytes */${bytes.length}` })
  const range = `bytes ${start}-${bytes.length - 1}/${bytes.length}`
  return response.send(206, bytes.subarray(start), { ...headers, "content-range": range })
}

/** An answer with something wrong about its body. */
class Faulty {
  readonly #response: ServerResponse
  readonly #fault: Fault | undefined

  constructor(response: ServerResponse, fault: Fault | undefined) {
    this.#response = response
    this.#fault = fault
  }

  send(status: number, content: Buffer | string, headers: Record<string, string>): void {
    const body = Buffer.from(content)
    const half = body.subarray(0, Math.ceil(body.length / 2))
    const { "content-length": length = String(body.length), ...others } = headers
    const usual = { ...others, "content-length": length }
    if (this.#fault === "wrong") this.#response.writeHead(status, usual).end(Buffer.from(body.map((byte) => byte ^ 1)))
    // As if the connection ended with the body.
    else if (this.#fault === "short") this.#response.writeHead(status, others).end(half)
    else if (this.#fault === "long") this.#response.writeHead(status, others).end(Buffer.concat([body, body, body]))
    else if (this.#fault === "half" || this.#fault === "stall") {
      this.#response.writeHead(status, usual)
      this.#response.write(half, () => {
        // A client that has not read the bytes yet would lose them with the connection.
        if (this.#fault === "half") setTimeout(() => this.#response.socket?.destroy(), 250)
      })
    } else this.#response.writeHead(status, usual).end(body)
  }
}
