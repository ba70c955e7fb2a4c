import { randomUUID } from "node:crypto"
import { join } from "node:path"
import type { NativePolicy } from "../../engine/native/native-policy.ts"
import { GigpoError } from "../../errors.ts"
import { promptFromJson } from "../../tinker/datum.ts"
import { version as packageVersion } from "../../version.ts"
import { ApiError, asApiError } from "../api-error.ts"
import type { FieldReader } from "../fields.ts"
import { isKey } from "../key.ts"
import { Archives } from "./archives.ts"
import type { Departure, Departures } from "./departures.ts"
import { KeptWeights, type Kind } from "./kept-weights.ts"
import { readCall, readFields } from "./read-body.ts"
import { type Result, Results } from "./results.ts"
import { type AdamParams, ServedModel } from "./served-model.ts"
import { draw, FrozenPolicies, policyOf, type Source } from "./served-samplers.ts"

export interface TinkerServerOptions {
  /** What clients call the model. */
  readonly model: string
  readonly maxPositions: number
  /** What a reply ends with where a client does not say. */
  readonly stopTokens: readonly number[]
  /** Opens a model to be trained: an adapter of this rank, or, with 0, all weights. */
  readonly open: (lora: { readonly rank: number; readonly seed: number }) => Promise<NativePolicy>
  /** Opens what only samples: a folder of saved weights, or the model as it is. */
  readonly openFrozen: (directory: string | undefined) => Promise<NativePolicy>
  /** Folder of the weights that clients save. */
  readonly checkpoints: string
  /** Clients must send it. */
  readonly key: string
  /** What the tokenizer is known by. */
  readonly tokenizer?: string | undefined
  /** Models that are trained at once; each takes the memory of its own. Default 1. */
  readonly models?: number | undefined
  /** Policies that only sample, kept open at once. Default 2. */
  readonly samplers?: number | undefined
  /** Seconds without a sign of life after which a client's models are freed. Default 300. */
  readonly silence?: number | undefined
  readonly departures?: readonly Departure[] | undefined
  readonly onError?: ((error: unknown) => void) | undefined
}

export interface TinkerServer extends AsyncDisposable {
  answer(request: Request): Promise<Response>
}

interface Session {
  readonly id: string
  readonly models: Map<number, ServedModel | Promise<ServedModel>>
  readonly samplings: Map<number, string>
  /** Request ids of models by their number. */
  readonly made: Map<number, string>
  heard: number
}

const prefix = "/api/v1"

/** The Tinker API over this machine's engine: the same answers for a server and for clients in this process. */
export function tinkerServer(options: TinkerServerOptions): TinkerServer {
  const { model: baseModel, maxPositions, silence = 300, models: mostModels = 1, onError = () => {} } = options
  const departures: Departures = new Set(options.departures)
  const results = new Results(departures, onError)
  const kept = new KeptWeights(options.checkpoints)
  const archives = new Archives()
  const openFrozen = async (path: string | undefined) =>
    await options.openFrozen(path === undefined ? undefined : (await kept.read(path)).directory)
  const frozen = new FrozenPolicies(openFrozen, options.samplers ?? 2)
  const sessions = new Map<string, Session>()
  const begun = new Map<string, string>()
  const models = new Map<string, ServedModel>()
  /** With the results that were promised, by the requests' numbers. */
  const samplings = new Map<string, { readonly source: Source; readonly drawn: Map<number, string> }>()
  let opening = 0

  const sessionOf = (id: string): Session => {
    const session = sessions.get(id)
    if (!session) throw new ApiError(404, `There is no session ${id}.`)
    session.heard = performance.now()
    return session
  }
  const modelOf = (id: string): ServedModel => {
    const model = models.get(id)
    if (!model) throw new ApiError(404, `There is no model ${id}.`)
    for (const session of sessions.values()) if (id.startsWith(`${session.id}:`)) session.heard = performance.now()
    return model
  }
  const free = async (model: ServedModel) => {
    if (!models.delete(model.id)) return
    await model.policy.dispose()
  }
  const end = async (session: Session) => {
    sessions.delete(session.id)
    for (const [key, id] of begun) if (id === session.id) begun.delete(key)
    for (const id of samplings.keys()) if (id.startsWith(`${session.id}:`)) samplings.delete(id)
    for (const model of [...models.values()]) if (model.id.startsWith(`${session.id}:`)) await free(model)
  }
  const sweep = setInterval(() => {
    for (const session of sessions.values())
      if (performance.now() - session.heard > silence * 1000) void end(session).catch(onError)
  }, 1000)
  sweep.unref()

  const make = (
    session: Session,
    number: number,
    lora: { rank: number; seed: number },
    from?: { path: string; optimizer: boolean },
  ) => {
    const id = `${session.id}:train:${number}`
    const before = session.made.get(number)
    if (before !== undefined) return { id, request_id: before }
    if (models.size + opening >= mostModels)
      throw new ApiError(
        400,
        `This engine trains ${mostModels === 1 ? "one model" : `${mostModels} models`} at once; unload another first, or start it with --models ${mostModels + 1}.`,
      )
    opening++
    const work = async (): Promise<Result> => {
      try {
        const policy = await options.open(lora)
        const model = new ServedModel({ id, baseModel, rank: lora.rank, policy }, results, departures)
        if (from) await kept.load(model, from.path, from.optimizer)
        models.set(id, model)
        return { kind: "json", body: { type: from ? "load_weights" : "create_model", model_id: id, path: from?.path } }
      } finally {
        opening--
      }
    }
    const request_id = results.take(from ? "load_weights" : "create_model", work())
    session.made.set(number, request_id)
    return { id, request_id }
  }

  const sampling = (session: Session, number: number, source: Source): string => {
    const id = `${session.id}:sample:${number}`
    session.samplings.set(number, id)
    samplings.set(id, { source, drawn: new Map() })
    return id
  }

  const publish = (model: ServedModel, fields: FieldReader): (() => Promise<Result>) => {
    const name = fields.string("path")
    if (name !== undefined) {
      kept.pathOf(model, "sampler_weights", name)
      return async () => {
        const path = await kept.save(model, "sampler_weights", name, fields.boolean("overwrite") ?? false)
        return { kind: "json", body: { type: "save_weights_for_sampler", path } }
      }
    }
    if (departures.has("named-samplers")) throw new ApiError(422, "path: Field required")
    const number = fields.whole("sampling_session_seq_id", 0, 2 ** 31) ?? 0
    return async () => {
      const session = sessions.get(model.id.replace(/:train:\d+$/, ""))
      if (!session) throw new ApiError(404, "The session is over.")
      let slot: string | undefined
      if (departures.has("shared-slot")) {
        slot = join(options.checkpoints, `slot-${randomUUID()}`)
        await (model.rank > 0 ? model.policy.saveAdapter(slot) : model.policy.save(slot))
        model.newestSlot = slot
      }
      const sampling_session_id = sampling(session, number, { model, version: model.version, slot })
      return { kind: "json", body: { type: "save_weights_for_sampler", path: null, sampling_session_id } }
    }
  }

  const save = (model: ServedModel, kind: Kind, fields: FieldReader) => {
    const [name, overwrite] = [fields.required("path"), fields.boolean("overwrite") ?? false]
    kept.pathOf(model, kind, name)
    return async (): Promise<Result> => {
      const path = await kept.save(model, kind, name, overwrite)
      return { kind: "json", body: { type: "save_weights", path } }
    }
  }

  /** What changes a model: checked when it comes, done in its turn. */
  const changing = async (
    request: Request,
    kind: string,
    start: (model: ServedModel, fields: FieldReader) => () => Promise<Result>,
  ) => {
    const fields = await readFields(request)
    const model = modelOf(fields.required("model_id"))
    const seqId = fields.whole("seq_id", 0, 2 ** 31) ?? 0
    return { request_id: model.take(kind, seqId, () => start(model, fields)), model_id: model.id }
  }
  const training = async (request: Request, forwardOnly: boolean) => {
    const call = await readCall(request, forwardOnly, departures)
    const model = modelOf(call.modelId)
    return { request_id: model.take("forward_backward", call.seqId, () => model.train(call)), model_id: model.id }
  }

  const routes: Readonly<Record<string, (request: Request) => Promise<object>>> = {
    "/client/config": async () => ({
      pjwt_auth_enabled: false,
      ...(!departures.has("not-ours") && { gigpo: { version: packageVersion } }),
    }),
    "/client/dynamic_config": async () => ({ refresh_interval_sec: 300, sample_cancel_enabled: false }),
    "/get_server_capabilities": async () => ({
      supported_models: [
        { model_name: baseModel, max_context_length: maxPositions, trainable: true, sampleable: true },
      ],
    }),
    "/create_session": async (request) => {
      const key = request.headers.get("x-idempotency-key") ?? randomUUID()
      const id = begun.get(key) ?? randomUUID()
      begun.set(key, id)
      if (!sessions.has(id))
        sessions.set(id, { id, models: new Map(), samplings: new Map(), made: new Map(), heard: performance.now() })
      return { type: "create_session", session_id: id }
    },
    "/session_heartbeat": async (request) => {
      const id = (await readFields(request)).required("session_id")
      if (!sessions.has(id)) throw new ApiError(410, "The session is over.")
      sessionOf(id)
      return { type: "session_heartbeat" }
    },
    "/create_model": async (request) => {
      const fields = await readFields(request)
      const session = sessionOf(fields.required("session_id"))
      const named = fields.required("base_model")
      if (named !== baseModel) throw new ApiError(400, `There is no model ${named}; this engine has ${baseModel}.`)
      const lora = (fields.any("lora_config") ?? {}) as { rank?: unknown; seed?: unknown }
      const { rank = 32, seed = 0 } = lora
      if (!Number.isSafeInteger(rank) || (rank as number) < 0 || (rank as number) > 4096)
        throw new ApiError(400, "lora_config.rank must be a whole number from 0 to 4096.")
      const number = fields.whole("model_seq_id", 0, 2 ** 31) ?? 0
      const { id, request_id } = make(session, number, { rank: rank as number, seed: Number(seed ?? 0) })
      return { request_id, model_id: id }
    },
    "/load_weights": async (request) => {
      const fields = await readFields(request)
      const [path, optimizer] = [fields.required("path"), fields.boolean("optimizer") ?? false]
      const { lora_rank: rank } = await kept.read(path)
      const sessionId = fields.string("session_id")
      if (sessionId !== undefined) {
        const number = fields.whole("model_seq_id", 0, 2 ** 31) ?? 0
        const { id, request_id } = make(sessionOf(sessionId), number, { rank, seed: 0 }, { path, optimizer })
        return { request_id, model_id: id }
      }
      const model = modelOf(fields.required("model_id"))
      const work = async (): Promise<Result> => {
        await kept.load(model, path, optimizer)
        return { kind: "json", body: { type: "load_weights", path } }
      }
      const seqId = fields.whole("seq_id", 0, 2 ** 31) ?? 0
      return { request_id: model.take("load_weights", seqId, () => work), model_id: model.id }
    },
    "/get_info": async (request) => {
      const { id, rank } = modelOf((await readFields(request)).required("model_id"))
      return {
        ...{ type: "get_info", model_id: id, model_name: baseModel, is_lora: rank > 0, lora_rank: rank },
        model_data: { model_name: baseModel, arch: "gigpo", tokenizer_id: options.tokenizer ?? baseModel },
      }
    },
    "/unload_model": async (request) => {
      const model = modelOf((await readFields(request)).required("model_id"))
      const body = { type: "unload_model", model_id: model.id }
      const work = async (): Promise<Result> => {
        await free(model)
        return { kind: "json", body }
      }
      return { request_id: results.take("unload_model", work()), model_id: model.id }
    },
    "/forward_backward": (request) => training(request, false),
    "/forward": (request) => training(request, true),
    "/optim_step": (request) =>
      changing(request, "optim_step", (model, fields) => {
        const given = (fields.any("adam_params") ?? fields.any("optimizer_params") ?? {}) as Record<string, unknown>
        return model.step(readAdam(given))
      }),
    "/save_weights": (request) => changing(request, "save_weights", (model, fields) => save(model, "weights", fields)),
    "/save_weights_for_sampler": (request) => changing(request, "save_weights_for_sampler", publish),
    ...(!departures.has("not-ours") && {
      "/gigpo/clear_gradients": (request: Request) => changing(request, "clear_gradients", (model) => model.forget()),
    }),
    "/weights_info": async (request) => {
      const {
        handle: _,
        directory: __,
        ...about
      } = await kept.read((await readFields(request)).required("tinker_path"))
      return about
    },
    "/create_sampling_session": async (request) => {
      const fields = await readFields(request)
      const session = sessionOf(fields.required("session_id"))
      const number = fields.whole("sampling_session_seq_id", 0, 2 ** 31) ?? 0
      const before = session.samplings.get(number)
      if (before !== undefined) return { type: "create_sampling_session", sampling_session_id: before }
      const path = fields.string("model_path")
      if (path !== undefined) await kept.read(path)
      else if (departures.has("no-reference")) throw new ApiError(400, "The base model cannot be sampled here.")
      else if (fields.required("base_model") !== baseModel)
        throw new ApiError(400, `There is no model ${fields.string("base_model")}; this engine has ${baseModel}.`)
      return { type: "create_sampling_session", sampling_session_id: sampling(session, number, { path }) }
    },
    "/asample": async (request) => {
      const fields = await readFields(request)
      const id = fields.required("sampling_session_id")
      const { source, drawn } = samplings.get(id) ?? {}
      if (!source || !drawn) throw new ApiError(404, `There is no sampling session ${id}.`)
      const number = fields.whole("seq_id", 0, 2 ** 53) ?? 0
      const before = departures.has("no-duplicates") ? undefined : drawn.get(number)
      const asked = readDraw(fields, options)
      const work = async (): Promise<Result> => {
        const policy = await policyOf(source, frozen, departures)
        return { kind: "sample", result: await draw(policy, asked, departures) }
      }
      const request_id = before ?? results.take("sample", work())
      drawn.set(number, request_id)
      const sample_sequence_ids = Array.from({ length: asked.samples }, (_, i) => `${request_id}:${i}`)
      return { request_id, sample_sequence_ids }
    },
    "/telemetry": async () => ({ status: "accepted" }),
  }

  const read = async (path: string): Promise<object | undefined> => {
    if (path === "/healthz") return { status: "ok" }
    if (path === "/get_server_capabilities") return await routes[path]!(undefined as never)
    const sampler = /^\/samplers\/([^/]+)$/.exec(path)?.[1]
    if (sampler !== undefined) {
      const { source } = samplings.get(decodeURIComponent(sampler)) ?? {}
      if (!source) throw new ApiError(404, "There is no such sampler.")
      const model_path = "path" in source ? source.path : undefined
      return { sampler_id: decodeURIComponent(sampler), base_model: baseModel, model_path }
    }
    const run = /^\/training_runs(?:\/([^/]+)(\/checkpoints)?)?$/.exec(path)
    if (!run) return undefined
    const [, id, checkpoints] = run
    const about = ({ id, rank }: ServedModel) => ({
      training_run_id: id,
      base_model: baseModel,
      is_lora: rank > 0,
      lora_rank: rank,
    })
    if (id === undefined) return { training_runs: [...models.values()].map(about) }
    const modelId = decodeURIComponent(id)
    if (!checkpoints) return about(modelOf(modelId))
    const found = await kept.list(modelId)
    return {
      checkpoints: found.map((name) => ({
        checkpoint_id: name,
        checkpoint_type: name.startsWith("weights/") ? "training" : "sampler",
        tinker_path: `tinker://${modelId}/${name}`,
      })),
    }
  }

  const respond = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    const path = pathname.slice(pathname.indexOf(prefix) + prefix.length)
    if (!pathname.includes(`${prefix}/`)) throw new ApiError(404, `${pathname} is no path of the Tinker API.`)
    const [, download] = /^\/downloads\/([\w-]+)$/.exec(path) ?? []
    if (download !== undefined && request.method === "GET") return await archives.open(download)
    if (path !== "/healthz") checkKey(request, options.key)
    if (request.method === "GET") {
      const [, id, name] =
        /^\/training_runs\/([^/]+)\/checkpoints\/((?:sampler_)?weights\/[^/]+)\/archive$/.exec(path) ?? []
      if (id !== undefined) {
        const { directory, is_lora } = await kept.read(`tinker://${decodeURIComponent(id)}/${name}`)
        if (!is_lora) throw new ApiError(400, "All weights of that model were trained: it has no adapter.")
        const location = `${new URL(request.url).origin}${pathname.slice(0, -path.length)}${archives.offer(directory)}`
        return new Response(null, { status: 302, headers: { location } })
      }
      const found = await read(path)
      if (found) return Response.json(found)
    } else if (request.method === "POST") {
      if (path === "/retrieve_future") {
        const id = (await readFields(request)).required("request_id")
        return await results.answer(id, /protobuf/.test(request.headers.get("accept") ?? ""), request.signal)
      }
      const finished = /^\/sessions\/([^/]+)\/finish$/.exec(path)?.[1]
      if (finished !== undefined) {
        await end(sessionOf(decodeURIComponent(finished)))
        return Response.json({ type: "finish_session" })
      }
      const route = Object.hasOwn(routes, path) ? routes[path] : undefined
      if (route) return Response.json(await route(request), { status: departures.has("other-success") ? 202 : 200 })
    } else if (request.method === "DELETE") {
      const [, id, name] = /^\/training_runs\/([^/]+)\/checkpoints\/((?:sampler_)?weights\/[^/]+)$/.exec(path) ?? []
      if (id !== undefined) {
        await kept.remove(`tinker://${decodeURIComponent(id)}/${name}`)
        return Response.json({ status: "deleted" })
      }
    }
    throw new ApiError(404, `${request.method} ${path} is not of this server.`)
  }

  return {
    answer: async (request) => {
      try {
        return await respond(request)
      } catch (error) {
        const told = asApiError(error, request.signal)
        if (told.status === 500) onError(error)
        return Response.json({ ...told.toJSON(), detail: told.message }, { status: told.status })
      }
    },
    async [Symbol.asyncDispose]() {
      clearInterval(sweep)
      await Promise.all([...sessions.values()].map(end))
      await frozen.dispose()
    },
  }
}

function checkKey(request: Request, key: string): void {
  const bearer = /^Bearer (.*)$/.exec(request.headers.get("authorization") ?? "")?.[1]
  if (!isKey(request.headers.get("x-api-key") ?? bearer ?? "", key))
    throw new ApiError(401, "The key is not that of this engine.")
}

function readAdam(given: Readonly<Record<string, unknown>>): AdamParams {
  const defaults = { learning_rate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 0 }
  if (given.type !== undefined && given.type !== "adamw")
    throw new ApiError(422, `There is no optimizer ${JSON.stringify(given.type)} here; send adam_params.`)
  for (const [name, value] of Object.entries(given))
    if (Object.hasOwn(defaults, name) && !(typeof value === "number" && value >= 0 && Number.isFinite(value)))
      throw new ApiError(400, `adam_params.${name} must be a number of at least 0.`)
  return { ...defaults, ...given } as AdamParams
}

function readDraw(fields: FieldReader, { maxPositions, stopTokens }: TinkerServerOptions) {
  const prompt = orBad("prompt", () => promptFromJson(fields.any("prompt")))
  if (prompt.length < 1 || prompt.length > maxPositions)
    throw new ApiError(400, `prompt has ${prompt.length} tokens; this engine reads from 1 to ${maxPositions}.`)
  const params = fields.any("sampling_params") ?? {}
  const {
    max_tokens,
    seed,
    stop,
    temperature = 1,
    top_k = -1,
    top_p = 1,
    key,
  } = params as Readonly<Record<string, unknown>>
  const bad = (what: string) => new ApiError(400, `sampling_params.${what}.`)
  const whole = (value: unknown, least: number) => Number.isSafeInteger(value) && (value as number) >= least
  if ((top_k !== -1 && top_k !== null) || top_p !== 1)
    throw bad("top_k and top_p cut the distribution that is trained, which this engine does not: leave them out")
  if (max_tokens !== undefined && max_tokens !== null && !whole(max_tokens, 1))
    throw bad("max_tokens must be a whole number of at least 1")
  if (typeof temperature !== "number" || !(temperature >= 0)) throw bad("temperature must be a number of at least 0")
  if (seed !== undefined && seed !== null && !Number.isSafeInteger(seed)) throw bad("seed must be a whole number")
  const stops = stop ?? stopTokens
  if (!Array.isArray(stops) || !stops.every((token) => whole(token, 0)))
    throw bad("stop must be a list of token ids: this engine knows no texts")
  const isWord = (word: unknown) => whole(word, 0) && (word as number) < 2 ** 32
  if (key !== undefined && !(Array.isArray(key) && key.length === 2 && key.every(isWord)))
    throw bad("key must be two whole numbers below 2^32")
  const samples = fields.whole("num_samples", 1, 4096) ?? 1
  if (key !== undefined && samples !== 1) throw bad("key is of one sample; leave num_samples out")
  if ((fields.whole("topk_prompt_logprobs", 0, 20) ?? 0) > 0)
    throw new ApiError(400, "topk_prompt_logprobs is not told here; set it to 0.")
  return {
    ...{ prompt, samples, temperature, stopTokens: stops as readonly number[] },
    maxTokens: Math.max(1, Math.min((max_tokens as number | undefined) ?? maxPositions, maxPositions - prompt.length)),
    seed: (seed ?? undefined) as number | undefined,
    key: key as readonly [number, number] | undefined,
    promptLogProbs: fields.boolean("prompt_logprobs") ?? false,
    topTokens: fields.whole("topk_sample_logprobs", 0, 20) ?? 0,
  }
}

function orBad<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (GigpoError.is(error)) throw new ApiError(400, `${name}: ${error.message}`)
    throw error
  }
}
