import { wholeGroup } from "../data/sent-group.ts"
import type { Source } from "../data/source.ts"

/**
 * Source that reads from the server of the page. A token in the address, which requests do not contain because it is after the #, is
 * exchanged for a cookie of this browser and removed from the address, so that links also work in new tabs.
 *
 * @throws {Error} if the token is not valid
 */
export async function serverSource(): Promise<Source> {
  // An address that is pasted into an open tab does not load the page again.
  addEventListener("hashchange", () => tokenIn(location.hash) !== undefined && location.reload())
  const token = tokenIn(location.hash)
  if (token !== undefined) {
    history.replaceState(null, "", "#/")
    await ask("session", { headers: { authorization: `Bearer ${token}` } })
  }
  const get = async (path: string, query: Record<string, string | undefined>, signal?: AbortSignal) => {
    const given = Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]))
    const response = await ask(`${path}?${new URLSearchParams(given)}`, signal && { signal })
    return await response?.json()
  }
  return {
    live: true,
    runs: (signal) => get("runs", {}, signal),
    overview: (run, signal) => get(`runs/${run}/overview`, {}, signal),
    reports: (run, cursor, signal) => get(`runs/${run}/reports`, { cursor }, signal),
    episodes: (run, cursor, signal) => get(`runs/${run}/episodes`, { cursor }, signal),
    search: (run, text, before, signal) => get(`runs/${run}/search`, { text, before: before?.toString() }, signal),
    async group(run, iteration, group, members, signal) {
      const sent = await get(`runs/${run}/episodes/${iteration}/${group}`, { members: members?.join(",") }, signal)
      return sent && wholeGroup(sent)
    },
  }
}

function tokenIn(hash: string): string | undefined {
  return new URLSearchParams(hash.replace(/^#\/?\??/, "")).get("token") ?? undefined
}

/** Response of the server; undefined if there is no such thing. */
async function ask(path: string, options: RequestInit = {}): Promise<Response | undefined> {
  const response = await fetch(`/api/${path}`, options).catch((cause) => {
    if (options.signal?.aborted) throw cause
    throw new Error("gigpo view does not answer. If it was stopped, start it again", { cause })
  })
  if (response.status === 404) return undefined
  if (response.status === 401) throw new Error(options.headers ? wrongToken : unknownBrowser)
  if (!response.ok) throw new Error(`${response.status}: ${(await response.json()).error.message}`)
  return response
}

const unknownBrowser =
  "This browser is not connected to gigpo view: open the address that gigpo view printed when it was started. It can be pasted into this tab."
const wrongToken =
  "The token in the address is not valid: the address is incomplete, or from an earlier start of gigpo view. Open the address that gigpo " +
  "view printed last; it can be pasted into this tab."
