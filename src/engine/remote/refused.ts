import { GigpoError } from "../../errors.ts"

/** What the server said. */
interface Said {
  readonly status: number
}

export function refused(path: string, status: number, reason: string): GigpoError {
  const said: Said = { status }
  return new GigpoError("ENGINE_REFUSED", `The engine refused ${path} (${status}): ${reason}`, { cause: said })
}

/** Whether it was refused for the form it came in, before anybody read what it says. */
export function isUnread(error: unknown): boolean {
  return GigpoError.is(error) && [404, 405, 413, 415].includes((error.cause as Said | undefined)?.status ?? 0)
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
