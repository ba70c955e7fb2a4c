import { setMaxListeners } from "node:events"
import { GigpoError } from "../util/errors.ts"
import { linkAbort } from "../util/linked-abort.ts"
import type { Trainable } from "./engine.ts"

// Two trainings on one policy would add their gradients into the same buffers, and an evaluation would meet weights that change.
// A policy therefore has one learner at a time. Policies are recognised by object identity; wrappers by what they share with the
// policy inside (`store`, `reference`).

/** Exclusive use of a policy by one training or cloning. */
interface Claim {
  /** Names the call in messages: "train with the run in runs/a". */
  readonly what: string
  readonly since: Date
  /** False while a report is given out: nothing changes the weights until the next one is asked for. */
  working: boolean
}

/** Use of a policy whose weights must stay the same meanwhile. */
interface Reading {
  readonly what: string
  readonly controller: AbortController
}

const claims = new WeakMap<object, Claim>()
const readings = new WeakMap<object, Set<Reading>>()
/** Claims by the stand-in that their work is given. */
const standIns = new WeakMap<object, Claim>()
/** Whose call is being started. Only set while a method of a stand-in runs synchronously. */
let acting: Claim | undefined

/** What else a training uses. */
interface Beside {
  /** The run that it writes: one training at a time, too. */
  readonly run?: object | undefined
  /** A policy whose weights must stay the same meanwhile. */
  readonly teacher?: object | undefined
}

/**
 * Runs `work` with exclusive use of a policy, from its first report to its end. `work` gets a stand-in for the policy; while it
 * computes, methods that change weights or gradients are refused to all other callers.
 *
 * @param what - names the work in messages to others.
 * @throws GigpoError `POLICY_BUSY` where the policy is in use already, before `work` begins.
 */
export async function* exclusively<T>(
  policy: Trainable,
  what: string,
  work: (policy: Trainable) => AsyncGenerator<T, void, undefined>,
  { run, teacher }: Beside = {},
): AsyncGenerator<T, void, undefined> {
  if (!isObject(policy)) return yield* work(policy) // refused there
  const claim = { what, since: new Date(), working: true }
  const own = [...identities(policy), ...[run].filter(isObject)]
  for (const one of own) checkUnused(one, what, one === run ? "run" : "policy")
  const held = isObject(teacher) && !own.includes(teacher) ? identities(teacher) : []
  for (const one of held) checkUnused(one, `${what}, whose teacher it is to be`, "policy", { readers: true })
  for (const one of own) claims.set(one, claim)
  const ends = held.map((one) => read(one, { what: `${what}, as its teacher`, controller: new AbortController() }))
  try {
    for await (const report of work(standIn(policy, claim))) {
      claim.working = false
      yield report
      claim.working = true
      for (const one of own) for (const { controller } of readings.get(one) ?? []) controller.abort(changed(claim))
    }
  } finally {
    for (const one of own) claims.delete(one)
    for (const end of ends) end()
  }
}

/**
 * Runs `work` while the weights of a policy must stay the same. Several may at once.
 *
 * @returns what `work` gives. Its signal is aborted when a training of the policy continues meanwhile.
 * @throws GigpoError `POLICY_BUSY` where the policy is being trained.
 */
export async function unchanged<T>(
  policy: object,
  what: string,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (!isObject(policy) || standIns.has(policy)) return await work(signal)
  const own = identities(policy)
  for (const one of own) checkUntrained(one, what)
  const controller = new AbortController()
  setMaxListeners(0, controller.signal) // every episode in flight listens
  const unlink = linkAbort(signal, controller)
  const ends = own.map((one) => read(one, { what, controller }))
  try {
    return await work(controller.signal)
  } finally {
    for (const end of ends) end()
    unlink()
  }
}

/**
 * Refuses a call that changes weights or gradients of a policy which a training works with. For engines, at the start of such
 * methods, before the first `await`.
 *
 * @throws GigpoError `POLICY_BUSY`
 */
export function checkUnclaimed(policy: object, call: string): void {
  const claim = claims.get(policy)
  if (!claim?.working || claim === acting) return
  throw new GigpoError(
    "POLICY_BUSY",
    `${call}: ${being(claim)}, whose gradients this would mix with. Wait until that has ended, or open the model again and use that policy.`,
  )
}

/** What a policy can be recognised by. */
function identities(policy: object): object[] {
  const { store, reference } = policy as Partial<Trainable>
  return [policy, store, reference].filter(isObject)
}

function checkUnused(one: object, what: string, kind: string, may: { readonly readers?: boolean } = {}): void {
  const claim = standIns.get(one) ?? claims.get(one)
  if (claim)
    throw new GigpoError(
      "POLICY_BUSY",
      `${what}: ${being(claim, kind)}. The two would mix what they compute: await the first or end it (break out of its loop, ` +
        "abort its signal), or open the model again for the second.",
    )
  const [reading] = readings.get(one) ?? []
  if (reading && !may.readers)
    throw new GigpoError(
      "POLICY_BUSY",
      `${what}: this policy is in use by ${reading.what}, which needs its weights unchanged. Await that first, or open the model again.`,
    )
}

function checkUntrained(policy: object, what: string): void {
  const claim = claims.get(policy)
  if (!claim?.working) return
  throw new GigpoError(
    "POLICY_BUSY",
    `${what}: ${being(claim)}, so its weights change meanwhile. Do it between two reports of that training or after it, or open ` +
      "what it saved as a policy of its own.",
  )
}

function changed(claim: Claim): GigpoError {
  return new GigpoError(
    "POLICY_BUSY",
    `The policy was trained on while it was evaluated: ${being(claim)}. Await the evaluation before the next report is asked for.`,
  )
}

function being({ what, since }: Claim, kind = "policy"): string {
  return `this ${kind} is in use by ${what}, begun ${since.toISOString()}`
}

function read(policy: object, reading: Reading): () => void {
  const all = readings.get(policy) ?? new Set()
  readings.set(policy, all.add(reading))
  return () => void all.delete(reading)
}

/** The same object for the holder of a claim: what its methods begin counts as the holder's. Not for the objects that they give, but for the critic. */
function standIn<T extends object>(object: T, claim: Claim): T {
  const proxy = new Proxy(Object.create(null) as T, {
    get: (_, key) => {
      const value: unknown = Reflect.get(object, key, object)
      if (key === "store" || key === "reference") return isObject(value) ? standIn(value, claim) : value
      if (typeof value !== "function" || key === "constructor") return value
      return (...given: unknown[]) => {
        const result: unknown = as(claim, () => Reflect.apply(value, object, given))
        return key === "critic" ? Promise.resolve(result).then((critic) => standIn(critic as object, claim)) : result
      }
    },
    set: (_, key, value) => Reflect.set(object, key, value, object),
    has: (_, key) => key in object,
    ownKeys: () => Reflect.ownKeys(object),
    getOwnPropertyDescriptor: (_, key) => {
      const found = Reflect.getOwnPropertyDescriptor(object, key)
      return found && { ...found, configurable: true }
    },
    getPrototypeOf: () => Reflect.getPrototypeOf(object),
  })
  standIns.set(proxy, claim)
  return proxy
}

function as<T>(claim: Claim, begin: () => T): T {
  const before = acting
  acting = claim
  try {
    return begin()
  } finally {
    acting = before
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null
}
