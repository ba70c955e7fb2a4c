import type { Source } from "../data/source.ts"

/**
 * Source that reads from the server of the page. The token is in the part of the address after #, which requests do not contain, and is
 * stored for reloads.
 */
export function serverSource(): Source {
  const given = new URLSearchParams(location.hash.replace(/^#\/?\??/, "")).get("token")
  if (given !== null) {
    sessionStorage.setItem("token", given)
    history.replaceState(null, "", "#/")
  }
  const token = sessionStorage.getItem("token") ?? ""
  const get = async (path: string, query: Record<string, string | undefined>, signal?: AbortSignal) => {
    const words = new URLSearchParams(
      Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
    )
    const response = await fetch(`/api/${path}?${words}`, {
      headers: { authorization: `Bearer ${token}` },
      ...(signal && { signal }),
    }).catch((cause) => {
      if (signal?.aborted) throw cause
      throw new Error("gigpo view does not answer. If it was stopped, start it again and open its new address", {
        cause,
      })
    })
    if (response.status === 404) return undefined
    if (!response.ok) throw new Error(`${response.status}: ${(await response.json()).error.message}`)
    return await response.json()
  }
  return {
    live: true,
    runs: (signal) => get("runs", {}, signal),
    reports: (run, cursor, signal) => get(`runs/${run}/reports`, { cursor }, signal),
    episodes: (run, cursor, signal) => get(`runs/${run}/episodes`, { cursor }, signal),
    group: (run, iteration, group, signal) => get(`runs/${run}/episodes/${iteration}/${group}`, {}, signal),
  }
}
