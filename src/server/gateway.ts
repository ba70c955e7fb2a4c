import { linkAbort } from "../linked-abort.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { endpoint, type Speaker } from "./endpoint.ts"
import { type HttpOptions, listen } from "./http.ts"
import { newKey } from "./key.ts"

/** Where agents find their model: an address, and a key for each that says who they are and dies with their episode. */
export interface Gateway extends AsyncDisposable {
  /** Where clients in other processes call. */
  readonly baseURL: string
  /** The same for clients in this process, without a socket. */
  readonly fetch: typeof fetch
  /** A key, and until it is closed the speaker that it leads to. */
  open(speaker: Speaker): { readonly apiKey: string; close(): void }
}

export interface GatewayOptions extends Omit<HttpOptions, "keyed"> {
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
  const speakers = new Map<string, Speaker & { readonly signal: AbortSignal }>()
  const open = new Set<() => void>()
  const answer = endpoint({ find: (key) => speakers.get(key), ...(onError && { onError }) })
  const server = await listen(answer, { ...http, keyed: true })
  return {
    baseURL: `${server.url}/v1`,
    fetch: async (input, init) => await answer(new Request(input, init)),
    open(speaker) {
      const apiKey = newKey()
      const over = new AbortController()
      const unlink = linkAbort(speaker.signal, over)
      speakers.set(apiKey, { ...speaker, signal: over.signal })
      const close = () => {
        open.delete(close)
        speakers.delete(apiKey)
        unlink()
        over.abort()
      }
      open.add(close)
      return { apiKey, close }
    },
    async [Symbol.asyncDispose]() {
      for (const close of open) close() // clients in this process have no connection that could end
      await server.close()
    },
  }
}
