import { setMaxListeners } from "node:events"
import { endpoint, type KeyHolder, type Speaker, unknownKey } from "../endpoint/endpoint.ts"
import type { ToldEpisode } from "../endpoint/posted.ts"
import { keyDigest, newKey } from "../http/key.ts"
import { type HttpOptions, listen } from "../http/listen.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { linkAbort } from "../util/linked-abort.ts"

/** Where agents find their model: an address, and a key for each that says who they are and dies with their episode. */
export interface Gateway extends AsyncDisposable {
  /** Where clients in other processes call. */
  readonly baseURL: string
  /** The same for clients in this process, without a socket. */
  readonly fetch: typeof fetch
  /**
   * Keys that are valid until they are closed: one for the speaker, and one for the program that plays the episode, which alone may say
   * how it ended.
   */
  open(speaker: Speaker, episode?: ToldEpisode): OpenedKeys
}

export interface OpenedKeys {
  readonly apiKey: string
  readonly controlKey: string
  close(): void
}

/** Options of `openGateway`. */
export interface GatewayOptions extends HttpOptions {
  /** Told of faults that are not the clients', who hear no more than that there was one. */
  readonly onError?: ((error: unknown) => void) | undefined
}

const optionKeys: KeysOf<GatewayOptions> = { host: true, port: true, names: true, limits: true, onError: true }

/**
 * Listens for agents. Disposing of it ends what they wait for.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option, `IO` where the address cannot be listened on
 */
export async function openGateway(options: GatewayOptions = {}): Promise<Gateway> {
  checkArguments("openGateway", options, optionKeys)
  const { onError, ...http } = options
  const holders = new Map<string, KeyHolder>()
  const open = new Set<() => void>()
  const find = (key: string) => holders.get(keyDigest(key))
  const answer = endpoint({ find, ...(onError && { onError }) })
  const keys = { known: (key: string) => find(key) !== undefined, refusal: unknownKey }
  // Episodes are of one training, whose agents share a machine: they are one client.
  const server = await listen((request) => answer(request), { ...http, keys })
  return {
    baseURL: `${server.url}/v1`,
    fetch: async (input, init) => await answer(new Request(input, init)),
    open(speaker, episode) {
      const [apiKey, controlKey] = [newKey(), newKey()]
      const over = new AbortController()
      setMaxListeners(0, over.signal) // every request of the episode listens
      const unlink = linkAbort(speaker.signal, over)
      const digests = [keyDigest(apiKey), keyDigest(controlKey)] as const
      holders.set(digests[0], { ...speaker, signal: over.signal })
      if (episode) holders.set(digests[1], { episode })
      const close = () => {
        open.delete(close)
        for (const digest of digests) holders.delete(digest)
        unlink()
        over.abort()
      }
      open.add(close)
      return { apiKey, controlKey, close }
    },
    async [Symbol.asyncDispose]() {
      for (const close of open) close() // clients in this process have no connection that could end
      await server.close()
    },
  }
}
