import { setTimeout as sleep } from "node:timers/promises"
import { GigpoError } from "../../util/errors.ts"
import { type Connection, type ConnectionLimits, connect } from "./connection.ts"
import type { ErrorFrame, ObservationFrame } from "./frames.ts"
import type { ServerAddress } from "./server-address.ts"

export interface SessionLimits extends ConnectionLimits {
  /** Seconds to wait for a free slot. */
  readonly capacityTimeout: number
}

/** Milliseconds between attempts to get a slot: doubled from the first to the longest. */
const firstPause = 50
const longestPause = 1000

/**
 * Opens a connection and resets the environment behind it. A server without a free slot answers CAPACITY_REACHED and closes; the session
 * then tries again until a slot is free or `capacityTimeout` has passed.
 */
export async function openSession(
  address: ServerAddress,
  reset: object,
  limits: SessionLimits,
  signal: AbortSignal,
): Promise<{ connection: Connection; first: ObservationFrame }> {
  const deadline = performance.now() + limits.capacityTimeout * 1000
  for (let pause = firstPause; ; pause = Math.min(2 * pause, longestPause)) {
    const connection = await connect(address, limits, signal)
    try {
      const first = await connection.request({ type: "reset", data: reset })
      if (first.type === "observation") return { connection, first }
      if (first.code !== "CAPACITY_REACHED") throw serverError(address, "reset", first)
    } catch (error) {
      await connection.close()
      throw error
    }
    await connection.close()
    if (performance.now() + pause > deadline) throw noSlot(address, limits.capacityTimeout)
    await sleep(pause, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}

export function serverError(address: ServerAddress, what: string, { code, message, errors }: ErrorFrame): GigpoError {
  const fields = errors.map(({ type, loc }) => `${loc}: ${type}`).join("; ")
  const advice =
    what === "step"
      ? "The fields of an action come from actionField or act."
      : "The fields of a reset come from the option reset; the server's log may say more."
  const found = [code, message.slice(0, 500), fields].filter((part) => part !== "").join(", ")
  return new GigpoError("ENVIRONMENT_FAILED", `openenv: ${address.name} answered a ${what} with ${found}. ${advice}`)
}

function noSlot(address: ServerAddress, seconds: number): GigpoError {
  return new GigpoError(
    "ENVIRONMENT_TIMEOUT",
    `openenv: ${address.name} had no free slot for ${seconds} s. Start the server with more slots (max_concurrent_envs), ` +
      "decrease training.rollout.concurrency, or increase capacityTimeout and training.rollout.environmentTimeout.",
  )
}
