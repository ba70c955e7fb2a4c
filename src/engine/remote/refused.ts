import { GigpoError } from "../../util/errors.ts"

/** What the server said. */
interface Said {
  readonly status: number
}

export function refused(path: string, status: number, reason: string): GigpoError {
  const said: Said = { status }
  return new GigpoError("ENGINE_REFUSED", `The engine refused ${path} (${status}): ${reason}`, { cause: said })
}

/** What a server says, as messages quote it: the first 500 characters. */
export function excerpt(said: unknown): string {
  const text = typeof said === "string" ? said : written(said)
  return text.slice(0, 500).trim()
}

function written(said: unknown): string {
  try {
    return JSON.stringify(said) ?? ""
  } catch {
    return "it is nested too deep" // which JSON.parse takes
  }
}

/** What no server of the API does, or not this one. */
export const cannot = (what: string, instead: string) =>
  new GigpoError("ENGINE_REFUSED", `This engine cannot ${what}: ${instead}.`)

/** Whether it was refused for its key or the form it came in, before anybody read what it says. */
export function isUnread(error: unknown): boolean {
  return GigpoError.is(error) && [401, 403, 404, 405, 413, 415].includes((error.cause as Said | undefined)?.status ?? 0)
}

/** Nobody knows whether the server took it, and it must not be sent again. */
export class MaybeTaken extends GigpoError {
  constructor(url: string, path: string, reason: string) {
    super(
      "ENGINE_LOST",
      `The engine at ${url} may or may not have taken ${path} (${reason}), and this server would do it twice. ` +
        "Resume from the last checkpoint.",
    )
  }
}

/** undefined where the server says no. */
export async function unlessRefused<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    if (GigpoError.is(error) && error.code === "ENGINE_REFUSED") return undefined
    throw error
  }
}

/** What an answer says; one that cannot be read is as good as none. */
export function understood<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new GigpoError(
      "ENGINE_LOST",
      `The engine's answer to ${path} is no result of the API: ${reason} Resume from the last checkpoint.`,
      { cause },
    )
  }
}
