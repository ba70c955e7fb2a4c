import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { ApiError } from "../chat/api-error.ts"
import type { FieldReader } from "../chat/fields.ts"
import type { Kind } from "./kept-weights.ts"
import { seqIdOf } from "./model-routes.ts"
import { type Received, type Routes, targetOf } from "./paths.ts"
import { readFields } from "./read-body.ts"
import type { Result } from "./results.ts"
import type { ServedModel } from "./served-model.ts"
import type { Serving } from "./serving.ts"
import type { Session } from "./session.ts"

type Start = (session: Session, model: ServedModel, fields: FieldReader) => () => Promise<Result>

/** Returns the routes that save, list, download and delete weights. */
export function weightRoutes({ options, departures, sessions, kept, archives }: Serving): Routes {
  const saving = (kind: Kind, type: string): Start => {
    return (_, model, fields) => {
      const [name, overwrite] = [fields.required("path"), fields.boolean("overwrite") ?? false]
      kept.pathOf(model, kind, name)
      return async () => ({ kind: "json", body: { type, path: await kept.save(model, kind, name, overwrite) } })
    }
  }
  const publish: Start = (session, model, fields) => {
    if (fields.string("path") !== undefined)
      return saving("sampler_weights", "save_weights_for_sampler")(session, model, fields)
    if (departures.has("named-samplers")) throw new ApiError(422, "path: Field required")
    const number = fields.whole("sampling_session_seq_id", 0, 2 ** 31) ?? 0
    return async () => {
      let slot: string | undefined
      if (departures.has("shared-slot")) {
        slot = join(options.checkpoints, `slot-${randomUUID()}`)
        await (model.rank > 0 ? model.policy.saveAdapter(slot) : model.policy.save(slot))
        model.newestSlot = slot
      }
      const sampling_session_id = session.sampling(number, { model, version: model.version, slot })
      return { kind: "json", body: { type: "save_weights_for_sampler", path: null, sampling_session_id } }
    }
  }
  const taking = (kind: string, start: Start) => async (received: Received) => {
    const fields = await readFields(received)
    const { session, model } = sessions.model(fields.required("model_id"))
    const request_id = model.take(kind, seqIdOf(fields), () => start(session, model, fields))
    return { request_id, model_id: model.id }
  }
  const pathOf = (id: string, kind: string, name: string) => `tinker://${id}/${kind}/${name}`

  return {
    "POST /save_weights": taking("save_weights", saving("weights", "save_weights")),
    "POST /save_weights_for_sampler": taking("save_weights_for_sampler", publish),
    "POST /weights_info": async (received) => {
      const { handle: _, ...about } = await kept.read((await readFields(received)).required("tinker_path"))
      return about
    },
    "GET /training_runs/:id/checkpoints": async (_, id) => ({
      checkpoints: (await kept.list(id!)).map((name) => ({
        checkpoint_id: name,
        checkpoint_type: name.startsWith("weights/") ? "training" : "sampler",
        tinker_path: `tinker://${id}/${name}`,
      })),
    }),
    "GET /training_runs/:id/checkpoints/:kind/:name/archive": async ({ request }, id, kind, name) => {
      const path = pathOf(id!, kind!, name!)
      const { is_lora } = await kept.read(path)
      if (!is_lora) throw new ApiError(400, "The model has no adapter to download: all of its weights were trained.")
      const { origin, before } = publicPlace(request)
      return new Response(null, { status: 302, headers: { location: `${origin}${before}${archives.offer(path)}` } })
    },
    "DELETE /training_runs/:id/checkpoints/:kind/:name": async (_, id, kind, name) => {
      await kept.remove(pathOf(id!, kind!, name!))
      return { status: "deleted" }
    },
  }
}

/** Returns the public address of this server, from the checked Host header. The request line may name another host, which is not checked. */
function publicPlace(request: Request): { readonly origin: string; readonly before: string } {
  const { protocol, host, pathname } = new URL(request.url)
  return { origin: `${protocol}//${request.headers.get("host") ?? host}`, before: targetOf(pathname).before }
}
