import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

interface FakeRun {
  readonly id: string
  readonly experiment: string
  readonly name: string
  status: string
  deleted: boolean
  readonly params: Map<string, string>
  /** By key, then in the order in which they came. */
  readonly metrics: Map<string, { value: unknown; timestamp: number; step: number }[]>
}

type Body = Record<string, unknown>

/** What it answers next in place of what it would: a status, or nothing, with the connection broken off. */
export type Trouble = { readonly status: number; readonly headers?: Record<string, string> } | "break"

class Refused extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** As much of an MLflow server as runs use, with its checks and limits (mlflow/utils/validation.py, mlflow/server/handlers.py). */
export class FakeMlflow {
  readonly experiments: Map<string, string> = new Map()
  readonly runs: FakeRun[] = []
  readonly calls: string[] = []
  readonly troubles: Trouble[] = []
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  readonly #authorization: string | undefined
  #told: () => void = () => {}

  static async start(authorization?: string): Promise<FakeMlflow> {
    const fake = new FakeMlflow(authorization)
    await new Promise<void>((resolve) => fake.#server.listen(0, "127.0.0.1", resolve))
    return fake
  }

  private constructor(authorization: string | undefined) {
    this.#authorization = authorization
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Once this many calls have been answered. */
  async heard(calls: number): Promise<void> {
    while (this.calls.length < calls)
      await new Promise<void>((resolve) => {
        this.#told = resolve
      })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ""
    for await (const chunk of request.setEncoding("utf8")) text += chunk
    const url = new URL(request.url!, this.url)
    const path = url.pathname.replace("/api/2.0/mlflow/", "")
    this.calls.push(path)
    const trouble = this.troubles.shift()
    response.on("close", () => this.#told())
    if (trouble === "break") return void request.socket.destroy()
    const send = (status: number, body: object, headers = {}) =>
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body))
    if (trouble) return void send(trouble.status, { error_code: "TROUBLE", message: "so to say" }, trouble.headers)
    if (this.#authorization && request.headers.authorization !== this.#authorization)
      return void send(401, { message: "You are not authenticated." })
    try {
      if (text.length > 1_000_000) throw new Refused("INVALID_PARAMETER_VALUE", "the request is larger than 1 MB")
      const isPost = request.method === "POST"
      if (isPost && request.headers["content-type"] !== "application/json")
        throw new Refused("INVALID_PARAMETER_VALUE", "no JSON")
      const body = isPost ? JSON.parse(text) : Object.fromEntries(url.searchParams)
      send(200, this.#do(`${request.method} ${path}`, body))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      send(error.code === "RESOURCE_DOES_NOT_EXIST" ? 404 : 400, { error_code: error.code, message: error.message })
    }
  }

  #do(call: string, body: Body): object {
    switch (call) {
      case "GET experiments/get-by-name": {
        const id = this.experiments.get(body.experiment_name as string)
        if (id === undefined) throw new Refused("RESOURCE_DOES_NOT_EXIST", "no such experiment")
        return { experiment: { experiment_id: id, lifecycle_stage: "active" } }
      }
      case "POST experiments/create": {
        const name = body.name as string
        if (this.experiments.has(name)) throw new Refused("RESOURCE_ALREADY_EXISTS", "it is there")
        this.experiments.set(name, String(this.experiments.size + 1))
        return { experiment_id: this.experiments.get(name) }
      }
      case "POST runs/create":
        return { run: { info: { run_id: this.#create(body).id } } }
      case "GET runs/get": {
        const { id, deleted, status, metrics } = this.#run(body)
        const latest = [...metrics].map(([key, all]) => ({
          key,
          ...all.reduce((last, one) => (one.step >= last.step ? one : last)),
        }))
        const info = { run_id: id, status, lifecycle_stage: deleted ? "deleted" : "active" }
        return { run: { info, data: { metrics: latest } } }
      }
      case "POST runs/update": {
        const { status, end_time: end } = body
        if (!["RUNNING", "FINISHED", "FAILED", "KILLED"].includes(status as string))
          throw new Refused("INVALID_PARAMETER_VALUE", `status ${status}`)
        if (status !== "RUNNING" && !Number.isInteger(end)) throw new Refused("INVALID_PARAMETER_VALUE", "end_time")
        this.#run(body).status = status as string
        return { run_info: {} }
      }
      case "POST runs/log-batch":
        this.#log(body)
        return {}
      default:
        throw new Refused("ENDPOINT_NOT_FOUND", call)
    }
  }

  #create(body: Body): FakeRun {
    const { experiment_id: experiment, run_name: name, start_time: since } = body
    if (![...this.experiments.values()].includes(experiment as string) || !Number.isInteger(since))
      throw new Refused("INVALID_PARAMETER_VALUE", JSON.stringify(body))
    const made = { id: `run-${this.runs.length}`, experiment: experiment as string, name: name as string }
    const run: FakeRun = { ...made, status: "RUNNING", deleted: false, params: new Map(), metrics: new Map() }
    this.runs.push(run)
    return run
  }

  #run({ run_id: id }: Body): FakeRun {
    const run = this.runs.find((one) => one.id === id)
    if (!run) throw new Refused("RESOURCE_DOES_NOT_EXIST", `no run ${id}`)
    return run
  }

  #log(body: Body): void {
    const run = this.#run(body)
    const params = (body.params ?? []) as { key: string; value: string }[]
    const metrics = (body.metrics ?? []) as { key: string; value: unknown; timestamp: number; step: number }[]
    if (run.deleted) throw new Refused("INVALID_PARAMETER_VALUE", "the run is deleted")
    if (metrics.length > 1000 || params.length > 100 || metrics.length + params.length === 0)
      throw new Refused("INVALID_PARAMETER_VALUE", `${metrics.length} metrics, ${params.length} params`)
    for (const { key } of [...params, ...metrics]) checkName(key)
    for (const { key, value } of params) {
      if (typeof value !== "string" || value.length > 6000 || (run.params.get(key) ?? value) !== value)
        throw new Refused("INVALID_PARAMETER_VALUE", `param ${key}`)
      run.params.set(key, value)
    }
    for (const { key, value, timestamp, step } of metrics) {
      const isValue = typeof value === "number" || ["NaN", "Infinity", "-Infinity"].includes(value as string)
      if (!isValue || !Number.isInteger(timestamp) || !Number.isInteger(step))
        throw new Refused("INVALID_PARAMETER_VALUE", `metric ${key}`)
      run.metrics.set(key, [...(run.metrics.get(key) ?? []), { value, timestamp, step }])
    }
  }
}

function checkName(name: string): void {
  const parts = name.split("/")
  const odd = parts.some((part) => part === "" || part === "." || part === "..")
  if (!/^[\w\-. /]+$/.test(name) || name.length > 250 || odd) throw new Refused("INVALID_PARAMETER_VALUE", name)
}
