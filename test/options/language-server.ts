import { spawn } from "node:child_process"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"

interface Answer {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly items?: readonly unknown[] }
  readonly result?: unknown
}

/** TypeScript's language server, as editors talk to it. */
export class LanguageServer {
  readonly #server = spawn(
    process.execPath,
    [join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc"), "--lsp", "--stdio"],
    { stdio: ["pipe", "pipe", "ignore"] },
  )
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  #received = Buffer.alloc(0)

  /** @param folder of the project */
  static async start(folder: string): Promise<LanguageServer> {
    const server = new LanguageServer()
    server.#server.stdout.on("data", (bytes: Buffer) => server.#read(bytes))
    const capabilities = { textDocument: { hover: { contentFormat: ["markdown"] } } }
    await server.#ask("initialize", { processId: process.pid, rootUri: pathToFileURL(folder).href, capabilities })
    server.#send({ method: "initialized", params: {} })
    return server
  }

  open(file: string, text: string): void {
    const textDocument = { uri: pathToFileURL(file).href, languageId: "typescript", version: 1, text }
    this.#send({ method: "textDocument/didOpen", params: { textDocument } })
  }

  /** What is shown over a place, from 0 on; empty where nothing is. */
  async hover(file: string, line: number, character: number): Promise<string> {
    const textDocument = { uri: pathToFileURL(file).href }
    const found = await this.#ask("textDocument/hover", { textDocument, position: { line, character } })
    return (found as { contents: { value: string } } | null)?.contents.value ?? ""
  }

  stop(): void {
    this.#server.kill()
  }

  #ask(method: string, params: unknown): Promise<unknown> {
    const id = this.#waiting.size + 1
    return new Promise((resolve) => {
      this.#waiting.set(id, ({ result }) => resolve(result))
      this.#send({ id, method, params })
    })
  }

  #send(message: object): void {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message })
    this.#server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  }

  #read(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes])
    for (;;) {
      const end = this.#received.indexOf("\r\n\r\n")
      const length = Number(/Content-Length: (\d+)/.exec(this.#received.toString("utf8", 0, end))?.[1])
      if (end < 0 || this.#received.length < end + 4 + length) return
      this.#answer(JSON.parse(this.#received.toString("utf8", end + 4, end + 4 + length)))
      this.#received = this.#received.subarray(end + 4 + length)
    }
  }

  #answer({ id, method, params, result }: Answer): void {
    if (id === undefined) return
    if (method === undefined) this.#waiting.get(id)?.({ result })
    else this.#send({ id, result: params?.items?.map(() => null) ?? null }) // asks for settings
  }
}
