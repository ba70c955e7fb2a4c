import { ApiError } from "../chat/api-error.ts"
import type { FieldReader } from "../chat/fields.ts"
import type { Received, Routes } from "./paths.ts"
import { readAdam } from "./read-asked.ts"
import { readCall, readFields } from "./read-body.ts"
import type { Result } from "./results.ts"
import { ServedModel } from "./served-model.ts"
import type { Serving } from "./serving.ts"
import type { Session } from "./session.ts"

interface Lora {
  readonly rank: number
  readonly seed: number
}

/** Returns the routes that create, train and unload models. */
export function modelRoutes(serving: Serving): Routes {
  return { ...lifeRoutes(serving), ...trainingRoutes(serving), ...infoRoutes(serving) }
}

/** Routes that create, load and unload models. */
function lifeRoutes(serving: Serving): Routes {
  const { options, sessions, kept } = serving
  const { model: baseModel } = options
  const make = modelMaker(serving)
  return {
    "POST /create_model": async (received) => {
      const fields = await readFields(received)
      const session = sessions.find(fields.required("session_id"))
      const named = fields.required("base_model")
      if (named !== baseModel)
        throw new ApiError(400, `The model ${named.slice(0, 200)} does not exist; this engine has ${baseModel}.`)
      return make(session, numberOf(fields), readLora(fields))
    },
    "POST /load_weights": async (received) => {
      const fields = await readFields(received)
      const [path, optimizer] = [fields.required("path"), fields.boolean("optimizer") ?? false]
      const { lora_rank: rank } = await kept.read(path)
      const sessionId = fields.string("session_id")
      if (sessionId !== undefined)
        return make(sessions.find(sessionId), numberOf(fields), { rank, seed: 0 }, { path, optimizer })
      const { model } = sessions.model(fields.required("model_id"))
      const work = async (): Promise<Result> => {
        await kept.load(model, path, optimizer)
        return { kind: "json", body: { type: "load_weights", path } }
      }
      return { request_id: model.take("load_weights", seqIdOf(fields), () => work), model_id: model.id }
    },
    "POST /unload_model": async (received) => {
      const { session, model } = sessions.model((await readFields(received)).required("model_id"))
      const work = async (): Promise<Result> => {
        if (session.models.delete(model.id)) await model.policy.dispose()
        return { kind: "json", body: { type: "unload_model", model_id: model.id } }
      }
      return { request_id: session.results.take("unload_model", work), model_id: model.id }
    },
  }
}

/** Routes that compute gradients and updates. */
function trainingRoutes({ options, departures, sessions }: Serving): Routes {
  const { maxPositions } = options
  const changing = async (
    received: Received,
    kind: string,
    start: (model: ServedModel, fields: FieldReader) => () => Promise<Result>,
  ) => {
    const fields = await readFields(received)
    const { model } = sessions.model(fields.required("model_id"))
    return { request_id: model.take(kind, seqIdOf(fields), () => start(model, fields)), model_id: model.id }
  }
  const training = async (received: Received, forwardOnly: boolean) => {
    const call = await readCall(received, forwardOnly, { departures, maxPositions })
    const { model } = sessions.model(call.modelId)
    const holds = call.data.reduce((sum, { tokens, inputs }) => sum + tokens.byteLength * (2 + inputs.size), 0)
    const request_id = model.take("forward_backward", call.seqId, await model.checked(call), holds)
    return { request_id, model_id: model.id }
  }
  return {
    "POST /forward_backward": (received) => training(received, false),
    "POST /forward": (received) => training(received, true),
    "POST /optim_step": (received) =>
      changing(received, "optim_step", (model, fields) =>
        model.step(readAdam(fields.any("adam_params") ?? fields.any("optimizer_params") ?? {})),
      ),
    ...(!departures.has("not-ours") && {
      "POST /gigpo/clear_gradients": (received: Received) =>
        changing(received, "clear_gradients", (model) => model.forget()),
    }),
  }
}

/** Routes that describe models. */
function infoRoutes({ options, sessions }: Serving): Routes {
  const { model: baseModel } = options
  const about = ({ id, rank }: ServedModel) => ({
    training_run_id: id,
    base_model: baseModel,
    is_lora: rank > 0,
    lora_rank: rank,
  })
  return {
    "POST /get_info": async (received) => {
      const { id, rank } = sessions.model((await readFields(received)).required("model_id")).model
      return {
        ...{ type: "get_info", model_id: id, model_name: baseModel, is_lora: rank > 0, lora_rank: rank },
        model_data: { model_name: baseModel, arch: "gigpo", tokenizer_id: options.tokenizer ?? baseModel },
      }
    },
    "GET /training_runs": async () => ({
      training_runs: [...sessions].flatMap(({ models }) => [...models.values()].map(about)),
    }),
    "GET /training_runs/:id": async (_, id) => about(sessions.model(id!).model),
  }
}

/** Returns a function that opens a model for a session, new or from saved weights, if the engine has room for it. */
function modelMaker({ options, departures, sessions, kept }: Serving) {
  const { model: baseModel, models: most = 1 } = options
  let opening = 0

  const open = async (session: Session, id: string, lora: Lora): Promise<ServedModel> => {
    opening++
    try {
      const { signal } = session
      const policy = await options.open({ ...lora, signal })
      if (signal.aborted) {
        await policy.dispose()
        throw signal.reason
      }
      return new ServedModel(
        { id, baseModel, rank: lora.rank, policy, owner: session.group },
        session.results,
        departures,
      )
    } finally {
      opening--
    }
  }
  const checkRoom = (session: Session, id: string) => {
    if (session.models.has(id)) throw new ApiError(400, `The model ${id} already exists; unload it first.`)
    const open = [...sessions].reduce((sum, { models }) => sum + models.size, opening)
    if (open >= most)
      throw new ApiError(
        400,
        `This engine trains at most ${most === 1 ? "one model" : `${most} models`} at once; unload another first, or start the engine ` +
          `with --models ${most + 1}.`,
      )
  }
  return (session: Session, number: number, lora: Lora, from?: { path: string; optimizer: boolean }) => {
    const id = `${session.id}:train:${number}`
    const type = from ? "load_weights" : "create_model"
    const start = (): Promise<Result> => {
      checkRoom(session, id)
      return (async () => {
        const model = await open(session, id, lora)
        session.models.set(id, model)
        if (from)
          await kept.load(model, from.path, from.optimizer).catch(async (error) => {
            session.models.delete(id)
            await model.policy.dispose()
            throw error
          })
        return { kind: "json", body: { type, model_id: id, path: from?.path } }
      })()
    }
    return { request_id: session.results.take(type, start, { same: `model ${number}` }), model_id: id }
  }
}

const numberOf = (fields: FieldReader) => fields.whole("model_seq_id", 0, 2 ** 31) ?? 0
export const seqIdOf = (fields: FieldReader): number => fields.whole("seq_id", 0, 2 ** 31) ?? 0

function readLora(fields: FieldReader): Lora {
  const given = (fields.any("lora_config") ?? {}) as { readonly rank?: unknown; readonly seed?: unknown }
  const rank = given.rank ?? 32
  const seed = given.seed ?? 0
  if (!Number.isSafeInteger(rank) || (rank as number) < 0 || (rank as number) > 4096)
    throw new ApiError(400, "lora_config.rank must be an integer from 0 to 4096.")
  if (!Number.isSafeInteger(seed)) throw new ApiError(400, "lora_config.seed must be an integer.")
  return { rank: rank as number, seed: seed as number }
}
