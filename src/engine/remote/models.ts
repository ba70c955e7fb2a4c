import { GigpoError } from "../../util/errors.ts"
import { checkTokenizer } from "./check-tokenizer.ts"
import { RemoteModel, requestIdOf } from "./remote-model.ts"
import type { Session } from "./session.ts"

/** Saved weights that a model starts from. */
export interface Saved {
  readonly path: string
  /** Whether the moments of the optimizer are loaded, too. */
  readonly optimizer: boolean
}

/** Options of `Models`. */
export interface ModelsSetup {
  readonly session: Session
  readonly baseModel: string
  readonly rank: number
  readonly seed: number
  /** Folder of the local tokenizer, which must equal the server's. */
  readonly directory: string | undefined
}

/** Creates and frees trainable models on the server. */
export class Models {
  readonly #setup: ModelsSetup
  #made = 0
  /** Server's name of its tokenizer, once compared. */
  #tokenizer: string | undefined

  constructor(setup: ModelsSetup) {
    this.#setup = setup
  }

  get tokenizer(): string {
    return this.#tokenizer ?? "not told"
  }

  /**
   * Creates a model.
   *
   * @param again whether the server recognizes repeated requests
   */
  async create(again: boolean, from?: Saved): Promise<RemoteModel> {
    const { session, baseModel, rank, seed, directory } = this.#setup
    const answer = await session.post("/create_model", {
      ...{ session_id: session.id, model_seq_id: this.#made++, base_model: baseModel, type: "create_model" },
      lora_config: { rank, seed, train_unembed: true, train_mlp: true, train_attn: true },
    })
    const { body } = await session.futures.result(requestIdOf(answer, "/create_model"), "/create_model")
    const id = (body as { model_id?: unknown } | undefined)?.model_id ?? answer.model_id
    if (typeof id !== "string")
      throw new GigpoError("ENGINE_REJECTED", "The engine created a model but returned no model_id.")
    const model = new RemoteModel(session, id, again)
    this.#tokenizer ??= await checkTokenizer(session, id, directory)
    if (from) await model.call("/load_weights", { ...from, type: "load_weights" })
    return model
  }

  /** Frees a model. Failures are ignored: servers also free unused models themselves. */
  async free(model: RemoteModel): Promise<void> {
    const { connection, futures } = this.#setup.session
    const body = { model_id: model.id, type: "unload_model" }
    const outcome = await connection.attempt({ path: "/unload_model", body, within: 10_000 })
    const { request_id } = ((outcome.kind === "answered" ? outcome.body : undefined) ?? {}) as { request_id?: unknown }
    if (typeof request_id === "string") await futures.result(request_id, "/unload_model").catch(() => {})
  }
}
