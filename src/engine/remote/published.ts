import { unlessRefused } from "./refused.ts"
import type { RemoteModel } from "./remote-model.ts"
import type { Samplers } from "./samplers.ts"

/** Options of `Published`. */
export interface PublishedSetup {
  readonly samplers: Samplers
  readonly baseModel: string
  /** Saved weights that training starts from. Default: the base model. */
  readonly from: string | undefined
  /** Whether nothing has been probed or trained yet. */
  readonly untouched: () => boolean
  /** Returns the trained model, which is created at the first call. */
  readonly trained: () => Promise<RemoteModel>
}

/** Sampling sessions of the current weights and of the initial weights. */
export class Published {
  readonly #setup: PublishedSetup
  /** Number of optimizer steps and restores so far, which a sampler must include. */
  #version = 0
  #current: { readonly version: number; readonly session: Promise<string> } | undefined
  #frozen: Promise<string> | undefined

  constructor(setup: PublishedSetup) {
    this.#setup = setup
  }

  get version(): number {
    return this.#version
  }

  /** Called when the weights have changed. */
  changed(): void {
    this.#version++
  }

  /** Returns the sampling session of the current weights. */
  async current(): Promise<string> {
    if (this.#current?.version !== this.#version) {
      const session = this.#publish()
      this.#current = { version: this.#version, session }
      session.catch(() => {
        this.#current = undefined
      })
    }
    return await this.#current!.session
  }

  /** Returns the sampling session of the initial weights, which is kept. */
  async frozen(): Promise<string> {
    this.#frozen ??= this.#begun()
    return await this.#frozen
  }

  /** Publishes the current weights. Before any training there is no trained model, so the initial weights are opened. */
  async #publish(): Promise<string> {
    const { samplers, untouched, trained } = this.#setup
    if (untouched()) {
      const session = await unlessRefused(() => this.#begun())
      if (session !== undefined) return session
    }
    return await samplers.publish(await trained(), `gigpo-sampler-${this.#version}`)
  }

  /** Opens a sampling session of the initial weights. */
  async #begun(): Promise<string> {
    const { samplers, baseModel, from } = this.#setup
    return await samplers.open(from === undefined ? { base_model: baseModel } : { model_path: from })
  }
}
