import { createRequire } from "node:module"
import { Worker } from "node:worker_threads"
import { GigpoError } from "../errors.ts"
import {
  type TemplateAnswer,
  type TemplateRequest,
  type TemplateWorkerData,
  templateWorkerSource,
} from "./template-worker.ts"

export interface ChatTemplateLimits {
  /** Longest that one render may take, in ms; parsing has 10 s. Default 250. */
  readonly timeoutMs?: number
  /** Longest text that one render may give, in UTF-16 units. Default 1 048 576. */
  readonly maxLength?: number
}

interface Render {
  readonly request: TemplateRequest
  readonly resolve: (text: string) => void
  readonly reject: (error: GigpoError) => void
}

const parseTimeoutMs = 10_000

/**
 * A Jinja chat template, which is a program from the internet: it runs in a worker thread under a time and a size
 * limit. The worker starts with the first render, answers in order, is replaced after a render that had to be stopped
 * and does not keep the process alive while it is idle.
 */
export class ChatTemplate {
  readonly source: string
  readonly #name: string
  readonly #timeoutMs: number
  readonly #maxLength: number
  /** Unanswered renders by id, oldest first. */
  readonly #renders = new Map<number, Render>()
  #worker: Worker | undefined
  #progress: BigInt64Array = new BigInt64Array(2)
  #lastId = 0
  #watchdog: NodeJS.Timeout | undefined
  /** The work for whose sake the worker is being terminated. */
  #stopping: number | undefined
  #disposed = false

  /** `name` is the file that error messages blame. */
  constructor(source: string, name: string, limits: ChatTemplateLimits = {}) {
    this.source = source
    this.#name = name
    this.#timeoutMs = limits.timeoutMs ?? 250
    this.#maxLength = limits.maxLength ?? 2 ** 20
  }

  /** Fails with BAD_TOKENIZER where the template is not Jinja. */
  async parse(): Promise<void> {
    await this.#send(null)
  }

  /**
   * The text that the template makes of these variables. Fails with TEMPLATE_TIMEOUT where it takes too long and with
   * BAD_TOKENIZER where it fails or its text is too long; both leave the template usable.
   */
  render(variables: Readonly<Record<string, unknown>>): Promise<string> {
    return this.#send(variables)
  }

  /** Stops the worker. What is still unanswered fails with DISPOSED. */
  async dispose(): Promise<void> {
    this.#disposed = true
    await this.#worker?.terminate()
  }

  #send(variables: TemplateRequest["variables"]): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#disposed) reject(this.#disposedError())
      else this.#post({ request: { id: ++this.#lastId, variables }, resolve, reject })
    })
  }

  #post(render: Render): void {
    try {
      this.#worker ??= this.#start()
      this.#worker.postMessage(render.request)
    } catch (cause) {
      const message = "the chat template's variables could not be sent to its worker: give plain data only"
      render.reject(new GigpoError("BAD_ARGUMENT", message, { cause }))
      return
    }
    this.#renders.set(render.request.id, render)
    this.#worker.ref()
    this.#watch(this.#timeoutMs)
  }

  #start(): Worker {
    this.#progress = new BigInt64Array(new SharedArrayBuffer(16))
    const workerData: TemplateWorkerData = {
      jinja: createRequire(import.meta.url).resolve("@huggingface/jinja"),
      source: this.source,
      maxLength: this.#maxLength,
      progress: this.#progress,
    }
    let failure: unknown
    // No execArgv: the loaders and hooks of the program are not for this thread.
    const worker = new Worker(templateWorkerSource, { eval: true, workerData, execArgv: [], name: "chat template" })
    worker
      .on("message", (answer: TemplateAnswer) => {
        if ("text" in answer) this.#take(answer.id)?.resolve(answer.text)
        else this.#take(answer.id)?.reject(this.#error(answer.error))
      })
      .on("error", (error) => {
        failure = error
      })
      .on("exit", () => this.#ended(failure))
      .unref() // last: a new listener for messages refs again
    return worker
  }

  #take(id: number): Render | undefined {
    const render = this.#renders.get(id)
    this.#renders.delete(id)
    if (this.#renders.size === 0) this.#worker?.unref()
    return render
  }

  /** What the worker is doing and for how long; undefined while it is idle or starting. */
  #running(): { id: number; ms: number } | undefined {
    const started = Atomics.load(this.#progress, 0)
    const id = Number(this.#progress[1])
    // The worker may have gone on between the two reads; then it is not stuck.
    if (started === 0n || Atomics.load(this.#progress, 0) !== started) return undefined
    return { id, ms: Number(process.hrtime.bigint() - started) / 1e6 }
  }

  /**
   * Looks again and again whether the running render is over its time. It asks when that render began, not when the
   * last answer was seen: this thread may itself have been busy for longer than the limit.
   */
  #watch(delayMs: number): void {
    this.#watchdog ??= setTimeout(() => {
      this.#watchdog = undefined
      if (this.#renders.size === 0) return
      const running = this.#running()
      const leftMs = (running?.id === 0 ? parseTimeoutMs : this.#timeoutMs) - (running?.ms ?? 0)
      if (running === undefined || leftMs > 0) this.#watch(leftMs + 1)
      else {
        this.#stopping = running.id
        void this.#worker?.terminate()
      }
    }, delayMs).unref()
  }

  /** The worker is gone: what it was doing is to blame (everything, where that was no render); a new one does the rest. */
  #ended(failure: unknown): void {
    const guilty = this.#running()?.id ?? 0
    const timedOut = this.#stopping !== undefined
    const finishedJustInTime = timedOut && this.#stopping !== guilty
    const renders = [...this.#renders.values()]
    this.#worker = undefined
    this.#stopping = undefined
    this.#renders.clear()
    for (const render of renders) {
      if (this.#disposed) render.reject(this.#disposedError())
      else if (finishedJustInTime || (guilty !== 0 && guilty !== render.request.id)) this.#post(render)
      else render.reject(timedOut ? this.#timeoutError() : this.#error("its worker stopped", failure))
    }
  }

  #error(reason: string, cause?: unknown): GigpoError {
    const message = `the chat template of ${this.#name} failed: ${reason}. Use messages that it takes, or another template`
    return new GigpoError("BAD_TOKENIZER", message, cause === undefined ? {} : { cause })
  }

  #timeoutError(): GigpoError {
    const message = `the chat template of ${this.#name} ran longer than ${this.#timeoutMs} ms: use another template or raise timeoutMs`
    return new GigpoError("TEMPLATE_TIMEOUT", message)
  }

  #disposedError(): GigpoError {
    return new GigpoError("DISPOSED", `the tokenizer of ${this.#name} was used after dispose()`)
  }
}
