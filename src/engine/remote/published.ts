import { unlessRefused } from "./refused.ts"
import type { RemoteModel } from "./remote-model.ts"
import type { Samplers } from "./samplers.ts"

export interface PublishedSetup {
  readonly samplers: Samplers
  readonly baseModel: string
  /** Saved weights that training begins with. Default: the base model. */
  readonly from: string | undefined
  /** Whether nobody has tried or trained anything yet. */
  readonly untouched: () => boolean
  /** The model that is trained, made if need be. */
  readonly trained: () => Promise<RemoteModel>
}

/** Sampling sessions of the weights as they are, and of those that training begins with. */
export class Published {
  readonly #setup: PublishedSetup
  /** Optimizer steps and restores so far: what a sampler must have seen. */
  #version = 0
  #current: { readonly version: number; readonly session: Promise<string> } | undefined
  #frozen: Promise<string> | undefined

  constructor(setup: PublishedSetup) {
    this.#setup = setup
  }

  get version(): number {
    return this.#version
  }

  /** The weights have changed. */
  changed(): void {
    this.#version++
  }

  /** Of the weights as they are. */
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

  /** Of what training begins with, kept for good. */
  async frozen(): Promise<string> {
    this.#frozen ??= this.#begun()
    return await this.#frozen
  }

  /** Nothing was trained yet, and nobody has asked to: then there is no model to publish. */
  async #publish(): Promise<string> {
    const { samplers, untouched, trained } = this.#setup
    if (untouched()) {
      const session = await unlessRefused(() => this.#begun())
      if (session !== undefined) return session
    }
    return await samplers.publish(await trained(), `gigpo-sampler-${this.#version}`)
  }

  /** What training begins with, as the server itself samples it. */
  async #begun(): Promise<string> {
    const { samplers, baseModel, from } = this.#setup
    return await samplers.open(from === undefined ? { base_model: baseModel } : { model_path: from })
  }
}
