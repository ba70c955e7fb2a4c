import type { NativePolicy } from "../engine/native/native-policy.ts"

interface Opened {
  readonly policy: Promise<NativePolicy>
  users: number
}

/**
 * Policies that only sample: the base model, which stays open, and the most recently used saved weights. A policy in use is not
 * closed: a request for other weights waits until one is free, and later requests wait behind it.
 */
export class FrozenPolicies {
  readonly #open: (path: string | undefined) => Promise<NativePolicy>
  readonly #versionOf: (path: string) => Promise<string>
  readonly #most: number
  #base: Opened | undefined
  readonly #saved = new Map<string, Opened>()
  #turn: Promise<unknown> = Promise.resolve()
  #freed: () => void = () => {}

  /**
   * @param setup.open - opens saved weights, or the base model for undefined.
   * @param setup.versionOf - returns a value that changes when other weights are saved at a path.
   * @param setup.most - maximum number of open policies, including the base model. At least one of saved weights is allowed.
   */
  constructor(setup: {
    readonly open: (path: string | undefined) => Promise<NativePolicy>
    readonly versionOf: (path: string) => Promise<string>
    readonly most: number
  }) {
    this.#open = setup.open
    this.#versionOf = setup.versionOf
    this.#most = Math.max(setup.most - 1, 1)
  }

  /** Runs work with a policy, which stays open until the work has ended. */
  async using<T>(path: string | undefined, work: (policy: NativePolicy) => Promise<T>): Promise<T> {
    const opened = path === undefined ? this.#useBase() : await this.#useSaved(path)
    try {
      return await work(await opened.policy)
    } finally {
      opened.users--
      this.#freed()
    }
  }

  async dispose(): Promise<void> {
    const all = [...(this.#base ? [this.#base] : []), ...this.#saved.values()]
    await Promise.allSettled(all.map(async ({ policy }) => (await policy).dispose()))
  }

  #useBase(): Opened {
    this.#base ??= this.#opening(undefined, () => {
      this.#base = undefined
    })
    this.#base.users++
    return this.#base
  }

  async #useSaved(path: string): Promise<Opened> {
    const version = await this.#versionOf(path)
    const turn = this.#turn.then(async () => {
      const opened = this.#saved.get(version) ?? (await this.#openSaved(version, path))
      this.#saved.delete(version)
      this.#saved.set(version, opened)
      opened.users++
      return opened
    })
    this.#turn = turn.catch(() => {})
    return await turn
  }

  async #openSaved(version: string, path: string): Promise<Opened> {
    while (this.#saved.size >= this.#most) {
      const [unused, { policy } = {}] = [...this.#saved].find(([, { users }]) => users === 0) ?? []
      if (unused === undefined) {
        await new Promise<void>((resolve) => {
          this.#freed = resolve
        })
        continue
      }
      this.#saved.delete(unused)
      await policy?.then((one) => one.dispose()).catch(() => {}) // frees its memory before another policy is opened
    }
    const opened = this.#opening(path, () => {
      if (this.#saved.get(version) === opened) this.#saved.delete(version)
    })
    return opened
  }

  #opening(path: string | undefined, onFailure: () => void): Opened {
    const policy = this.#open(path)
    policy.catch(onFailure)
    return { policy, users: 0 }
  }
}
