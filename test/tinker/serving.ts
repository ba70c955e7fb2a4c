import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { RemoteEngine, type RemoteEngineOptions } from "../../src/engine/remote/remote-engine.ts"
import { type TinkerServer, type TinkerServerOptions, tinkerServer } from "../../src/engine-server/tinker-server.ts"
import { type HttpServer, listen } from "../../src/http/listen.ts"
import { readModelConfig } from "../../src/model-files/model-config.ts"

/** What becomes of a request instead of being answered. */
export type Fault =
  | { readonly kind: "cut-before" | "cut-after" | "cut-mid" | "garbage" | "endless" | "killed" }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array<ArrayBuffer> }
  | {
      readonly kind: "status"
      readonly status: number
      readonly headers?: Record<string, string>
      readonly body?: unknown
    }

export interface Serving {
  readonly url: string
  readonly key: string
  /** Policies that were opened to be trained. */
  readonly policies: NativePolicy[]
  /** It is no more, with all that it held but what is on disk. */
  kill(): Promise<void>
  /** Paths, in the order in which they were asked. */
  readonly asked: string[]
  answer(request: Request): Promise<Response>
  connect(options?: Partial<RemoteEngineOptions>): Promise<RemoteEngine>
}

export const key = "tml-gigpo-tests-only"
export const lora = { alpha: 32 }

/** `gigpo engine` of a model's folder, in this process, over real sockets; it ends after the test. */
export class Servings {
  readonly #open: (() => Promise<unknown>)[] = []
  readonly #folder = mkdtemp(join(tmpdir(), "gigpo-engine-"))

  constructor() {
    afterEach(async () => {
      for (const close of this.#open.splice(0).reverse()) await close()
    })
    afterAll(async () => await rm(await this.#folder, { recursive: true }))
  }

  async serve(
    directory: string,
    options: Partial<TinkerServerOptions> = {},
    fault: (path: string, nth: number) => Fault | undefined = () => undefined,
    threads = 2,
  ): Promise<Serving> {
    const { maxPositions } = await readModelConfig(directory)
    const policies: NativePolicy[] = []
    const cpu = { device: "cpu", threads } as const
    const server: TinkerServer = tinkerServer({
      ...{ model: "tiny", maxPositions, stopTokens: [], key, models: 8 },
      checkpoints: await mkdtemp(join(await this.#folder, "kept-")),
      open: async ({ rank, seed }) => {
        const policy = await NativePolicy.open(directory, {
          ...cpu,
          ...(rank > 0 && { lora: { ...lora, rank, seed } }),
        })
        policies.push(policy)
        return policy
      },
      openFrozen: (folder = directory) => NativePolicy.open(folder, { ...cpu, base: directory, training: false }),
      onError: (error) => console.error(error),
      ...options,
    })
    const asked: string[] = []
    const counts = new Map<string, number>()
    const answer = async (request: Request) => {
      const path = new URL(request.url).pathname.replace("/api/v1", "")
      asked.push(path)
      const nth = counts.get(path) ?? 0
      counts.set(path, nth + 1)
      const found = fault(path, nth)
      if (found?.kind === "status")
        return Response.json(found.body ?? { detail: "as the test wants it" }, {
          status: found.status,
          headers: found.headers ?? {},
        })
      if (found?.kind === "killed") void kill()
      if (found?.kind === "cut-before" || found?.kind === "killed") return broken()
      if (found?.kind === "bytes") return protobuf(found.bytes)
      if (found?.kind === "garbage") return protobuf(new Uint8Array(64).fill(0xff))
      if (found?.kind === "endless") return protobuf(endless(300))
      const response = await server.answer(request)
      if (!found) return response
      return broken(found.kind === "cut-mid" ? new Uint8Array(await response.arrayBuffer()).slice(0, 5) : undefined)
    }
    const http: HttpServer = await listen(answer, { keys: server.keys, encodings: server.encodings })
    let killed: Promise<void> | undefined
    const kill = () => {
      killed ??= http.close().then(() => server[Symbol.asyncDispose]())
      return killed
    }
    this.#open.push(kill)
    const connect = async (more: Partial<RemoteEngineOptions> = {}) => {
      const engine = await RemoteEngine.open(directory, { url: http.url, key, onWarning: () => {}, ...more })
      this.#open.push(() => engine.dispose())
      return engine
    }
    return { url: http.url, key, kill, policies, asked, answer: server.answer, connect }
  }
}

const protobuf = (body: Uint8Array<ArrayBuffer> | ReadableStream) =>
  new Response(body, { headers: { "content-type": "application/x-protobuf" } })

/** So many MiB of nothing. */
function endless(pieces: number): ReadableStream {
  const piece = new Uint8Array(2 ** 20)
  return new ReadableStream({
    pull(controller) {
      if (pieces-- > 0) controller.enqueue(piece)
      else controller.close()
    },
  })
}

/** A connection that ends in the middle of its answer. */
function broken(begin = new Uint8Array()): Response {
  const body = new ReadableStream({
    start(controller) {
      if (begin.length > 0) controller.enqueue(begin)
      controller.error(new Error("cut"))
    },
  })
  return new Response(body, { headers: { "content-type": "application/json" } })
}
