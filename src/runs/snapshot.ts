import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { inside } from "../files/inside.ts"
import { io } from "../files/io-error.ts"
import { readBytes } from "../files/regular-file.ts"
import { unknownKey } from "../options/unknown-key.ts"
import { GigpoError } from "../util/errors.ts"
import { type Json, jsonProblem, type State, type StateArray, type Stateful } from "../util/state.ts"

// What estimator, loss, hooks and tasks remember, in a checkpoint: JSON in its manifest, numbers in files of their own.

export type Part = { readonly name?: string } & Partial<Stateful>

/** The parts of a training that may remember something, by their role. */
export type Parts = Readonly<Record<string, Part | undefined>>

/** What all parts remembered at one moment: copies, so that going on changes nothing in it. */
export type Memory = Readonly<Record<string, { readonly name?: string; readonly state: State }>>

/** What a manifest keeps of one part. */
export interface PartMemory {
  readonly name?: string
  readonly json?: Json
  readonly arrays?: Readonly<Record<string, keyof typeof arrayTypes>>
}

const arrayTypes = { Float32Array, Float64Array, Int32Array, Uint8Array }

const fileOf = (role: string, array: string) => `memory.${role}.${encodeURIComponent(array)}.bin`

/**
 * Asks every part for its state.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a part with only one of `state` and `restore`, or whose state is not what a file can hold.
 */
export function remember(parts: Parts): Memory {
  const memory: Record<string, Memory[string]> = {}
  for (const [role, part] of Object.entries(parts)) {
    if (!part) continue
    if ((part.state === undefined) !== (part.restore === undefined))
      throw bad(`${whose(role, part)} has only one of state() and restore(): write both, or none.`)
    memory[role] = { ...(part.name !== undefined && { name: part.name }), state: stateOf(role, part) }
  }
  return memory
}

function stateOf(role: string, part: Part): State {
  if (!part.state) return {}
  const state: unknown = run(role, part, "state", () => part.state!())
  const what = `The state() of ${whose(role, part, "the")}`
  const form = `${what} must give { json, arrays }, either or both`
  if (typeof state !== "object" || state === null || state instanceof Promise) throw bad(`${form}, at once.`)
  const unknown = unknownKey(state, { json: true, arrays: true })
  if (unknown !== undefined) throw bad(`${form}: ${unknown}.`)
  const { json, arrays = {} } = state as State
  const problem = json === undefined ? undefined : jsonProblem(json, "json")
  if (problem) throw bad(`${what} must give what JSON can hold, but ${problem}; numbers in plenty go into arrays.`)
  const copies = Object.entries(arrays).map(([name, values]): [string, StateArray] => {
    const type = typeOf(values)
    if (type) return [name, new arrayTypes[type](values)]
    throw bad(`${what}: arrays.${name} must be one of ${Object.keys(arrayTypes).join(", ")}.`)
  })
  return { ...(json !== undefined && { json: structuredClone(json) }), arrays: Object.fromEntries(copies) }
}

/** Writes the arrays into `directory` and returns what the manifest is to keep. */
export async function writeMemory(directory: string, memory: Memory): Promise<Record<string, PartMemory>> {
  const kept: Record<string, PartMemory> = {}
  for (const [role, { name, state }] of Object.entries(memory)) {
    const arrays: Record<string, keyof typeof arrayTypes> = {}
    for (const [array, values] of Object.entries(state.arrays ?? {})) {
      arrays[array] = typeOf(values)!
      const path = join(directory, fileOf(role, array))
      await io("write", path, writeFile(path, new Uint8Array(values.buffer, values.byteOffset, values.byteLength)))
    }
    kept[role] = {
      ...(name !== undefined && { name }),
      ...(state.json !== undefined && { json: state.json }),
      ...(Object.keys(arrays).length > 0 && { arrays }),
    }
  }
  return kept
}

/** The roles that another part has now than when a checkpoint was written, with a sentence's end about each. */
export function otherParts(parts: Parts, kept: Readonly<Record<string, PartMemory>>): Map<string, string> {
  const others = new Map<string, string>()
  for (const role of new Set([...Object.keys(kept), ...Object.keys(parts)])) {
    const [now, before] = [parts[role], kept[role]]
    const remembered = before?.json !== undefined || before?.arrays !== undefined
    if (before?.name !== now?.name || (before === undefined) !== (now === undefined))
      others.set(role, `it was ${show(before)} and is now ${show(now)}`)
    else if (remembered && !now?.restore)
      others.set(role, `it was ${show(before)} with a memory and is now ${show(now)} without restore()`)
  }
  return others
}

/** Gives the parts of these roles back what they remembered. */
export async function restoreMemory(
  directory: string,
  parts: Parts,
  kept: Readonly<Record<string, PartMemory>>,
): Promise<void> {
  for (const [role, { json, arrays = {} }] of Object.entries(kept)) {
    const part = parts[role]
    if (!part?.restore || (json === undefined && Object.keys(arrays).length === 0)) continue
    const read: Record<string, StateArray> = {}
    for (const [array, type] of Object.entries(arrays)) {
      const path = await inside(directory, fileOf(role, array))
      // Copied: what is read of a small file is a piece of memory that others use, too.
      read[array] = new arrayTypes[type](new Uint8Array(await io("read", path, readBytes(path))).buffer)
    }
    run(role, part, "restore", () => part.restore!({ ...(json !== undefined && { json }), arrays: read }))
  }
}

function run<T>(role: string, part: Part, method: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    const message = cause instanceof Error ? cause.message : cause
    throw new GigpoError("BAD_ARGUMENT", `The ${method}() of ${whose(role, part, "the")} threw: ${message}.`, { cause })
  }
}

const whose = (role: string, { name }: Part, the = "The") => `${the} ${role}${name === undefined ? "" : ` ${name}`}`

const show = (part: { readonly name?: string } | undefined) => (part ? (part.name ?? "one of your own") : "none")

function typeOf(values: unknown): keyof typeof arrayTypes | undefined {
  return (Object.keys(arrayTypes) as (keyof typeof arrayTypes)[]).find((name) => values instanceof arrayTypes[name])
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
