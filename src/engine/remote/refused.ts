import { GigpoError } from "../../errors.ts"

export function refused(path: string, status: number, reason: string): GigpoError {
  return new GigpoError("ENGINE_REFUSED", `The engine refused ${path} (${status}): ${reason}`)
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
