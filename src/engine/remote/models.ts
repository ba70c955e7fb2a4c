import { GigpoError } from "../../util/errors.ts"
import { checkTokenizer } from "./check-tokenizer.ts"
import { RemoteModel, requestIdOf } from "./remote-model.ts"
import type { Session } from "./session.ts"

/** What a model begins with, where not with what the server has. */
export interface Saved {
  readonly path: string
  /** Whether the optimizer's moments come with it. */
  readonly optimizer: boolean
}

export interface ModelsSetup {
  readonly session: Session
  readonly baseModel: string
  readonly rank: number
  readonly seed: number
  /** Whose tokenizer must be the server's. */
  readonly directory: string | undefined
}

/** Makes models on the server, each of which can be trained, and gives them back. */
export class Models {
  readonly #setup: ModelsSetup
  #made = 0
  /** What the server says of its tokenizer, once it was compared. */
  #tokenizer: string | undefined

  constructor(setup: ModelsSetup) {
    this.#setup = setup
  }

  get tokenizer(): string {
    return this.#tokenizer ?? "not told"
  }

  /** @param again whether the server knows a request again that is sent twice */
  async create(again: boolean, from?: Saved): Promise<RemoteModel> {
    const { session, baseModel, rank, seed, directory } = this.#setup
    const answer = await session.post("/create_model", {
      ...{ session_id: session.id, model_seq_id: this.#made++, base_model: baseModel, type: "create_model" },
      lora_config: { rank, seed, train_unembed: true, train_mlp: true, train_attn: true },
    })
    const { body } = await session.futures.result(requestIdOf(answer, "/create_model"), "/create_model")
    const id = (body as { model_id?: unknown } | undefined)?.model_id ?? answer.model_id
    if (typeof id !== "string") throw new GigpoError("ENGINE_REFUSED", "The engine made a model without a model_id.")
    const model = new RemoteModel(session, id, again)
    this.#tokenizer ??= await checkTokenizer(session, id, directory)
    if (from) await model.call("/load_weights", { ...from, type: "load_weights" })
    return model
  }

  /** As well as it goes: servers free what nobody asks about, too. */
  async free(model: RemoteModel): Promise<void> {
    const { connection, futures } = this.#setup.session
    const body = { model_id: model.id, type: "unload_model" }
    const outcome = await connection.attempt({ path: "/unload_model", body, within: 10_000 })
    const { request_id } = ((outcome.kind === "answered" ? outcome.body : undefined) ?? {}) as { request_id?: unknown }
    if (typeof request_id === "string") await futures.result(request_id, "/unload_model").catch(() => {})
  }
}
