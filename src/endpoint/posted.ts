import { inspect } from "node:util"
import { ApiError } from "../chat/api-error.ts"
import { type Contract, checkMetrics, checkReward } from "../environment/contract.ts"
import { isObject } from "../options/read.ts"
import { unknownKey } from "../options/unknown-key.ts"
import { GigpoError } from "../util/errors.ts"
import { visible } from "../util/visible.ts"

// What programs say of their episode, who cannot call a function of ours: by POST, or as the last line that they print.

/** Result of an agent's episode. */
export interface AgentEnd {
  readonly reward: number
  readonly success?: boolean | undefined
  /** Metrics reported as `episode/<name>`; undefined ones are left out. */
  readonly metrics?: Readonly<Record<string, number | undefined>> | undefined
}

/** Whom they tell. */
export interface ToldEpisode {
  step(state: { readonly anchor: string }): void
  /** Its reward is added to that of the last reply so far; null says that the episode cannot be scored. */
  end(end: AgentEnd | null): void
}

/** By the path of the request, what becomes of its body. */
export const tellings: Readonly<Record<string, (episode: ToldEpisode, body: unknown) => void>> = {
  "/v1/gigpo/step": (episode, body) => refusing(() => episode.step(readState(body))),
  "/v1/gigpo/reward": (episode, body) => refusing(() => episode.end(readEnd(body))),
}

/** Whatever is wrong with it, it is the program that was wrong. */
function refusing(tell: () => void): void {
  try {
    tell()
  } catch (error) {
    throw GigpoError.is(error) ? new ApiError(400, error.message) : error
  }
}

const contract: Contract = {
  strict: true, // nobody has looked at what a program prints
  broken: (rule) =>
    new GigpoError("BAD_ENVIRONMENT", `An agent's reward is not as it must be: ${visible(rule.slice(0, 300))}.`),
}

const endKeys: Readonly<Record<keyof AgentEnd, true>> = { reward: true, success: true, metrics: true }
const mostMetrics = 100

export interface ReadEnd extends AgentEnd {
  readonly metrics: Readonly<Record<string, number>>
}

/**
 * How an episode ended, from JSON: a number, `{ reward, success?, metrics? }`, or null where it cannot be scored.
 *
 * @throws GigpoError `BAD_ENVIRONMENT`
 */
export function readEnd(value: unknown): ReadEnd | null {
  const { reward, success, metrics = {}, ...rest } = isObject(value) ? value : { reward: value }
  const unknown = unknownKey(rest, endKeys)
  if (unknown) throw contract.broken(unknown)
  if (reward === null) return null
  if (typeof reward !== "number")
    throw contract.broken(`give a number, {"reward": …} or null, not ${inspect(value, { depth: 1 }).slice(0, 100)}`)
  checkReward(contract, reward)
  if (success !== undefined && ![true, false, 0, 1].includes(success as boolean))
    throw contract.broken("success must be true or false")
  if (!isObject(metrics) || Object.keys(metrics).length > mostMetrics)
    throw contract.broken(`metrics must be an object of at most ${mostMetrics} numbers by their names`)
  const told = Object.fromEntries(Object.entries(metrics).filter(([, value]) => value !== undefined))
  checkMetrics(contract, told as Record<string, number>)
  return {
    reward,
    ...(success !== undefined && { success: Boolean(success) }),
    metrics: told as Record<string, number>,
  }
}

function readState(body: unknown): { readonly anchor: string } {
  const strange = isObject(body) ? unknownKey(body, { anchor: true }) : undefined
  if (strange !== undefined) throw new ApiError(400, `The state: ${strange}.`)
  if (isObject(body) && typeof body.anchor === "string") return { anchor: body.anchor }
  throw new ApiError(400, 'Send the state as {"anchor": "…"}.', { param: "anchor" })
}
