import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { GigpoError } from "../errors.ts"
import { io } from "../files/io-error.ts"
import type { Json, State, StateArray, Stateful } from "../state.ts"

// What estimator, loss, hooks and tasks remember, in a checkpoint: JSON in its manifest, numbers in files of their own.

/** The parts of a training that may remember something, by their role. */
export type Parts = Readonly<Record<string, ({ readonly name?: string } & Partial<Stateful>) | undefined>>

/** What a manifest keeps of one part. */
export interface PartMemory {
  readonly name?: string
  readonly json?: Json
  readonly arrays?: Readonly<Record<string, keyof typeof arrayTypes>>
}

const arrayTypes = { Float32Array, Float64Array, Int32Array, Uint8Array }

const fileOf = (role: string, array: string) => `memory.${role}.${encodeURIComponent(array)}.bin`

/** Writes the arrays of all parts into `directory` and returns what the manifest is to keep. */
export async function saveMemory(directory: string, parts: Parts): Promise<Record<string, PartMemory>> {
  const kept: Record<string, PartMemory> = {}
  for (const [role, part] of Object.entries(parts)) {
    if (!part) continue
    const state: State = part.state?.() ?? {}
    const arrays: Record<string, keyof typeof arrayTypes> = {}
    for (const [array, values] of Object.entries(state.arrays ?? {})) {
      arrays[array] = typeOf(values, `${role}'s state.arrays.${array}`)
      const path = join(directory, fileOf(role, array))
      await io("write", path, writeFile(path, new Uint8Array(values.buffer, values.byteOffset, values.byteLength)))
    }
    kept[role] = {
      ...(part.name !== undefined && { name: part.name }),
      ...(state.json !== undefined && { json: state.json }),
      ...(Object.keys(arrays).length > 0 && { arrays }),
    }
  }
  return kept
}

/** Refuses (`BAD_CONFIG`) to go on with other parts than a checkpoint was written with. */
export function checkParts(directory: string, parts: Parts, kept: Readonly<Record<string, PartMemory>>): void {
  for (const role of new Set([...Object.keys(parts), ...Object.keys(kept)])) {
    const [now, before] = [parts[role], kept[role]]
    if (before?.name === now?.name && (before === undefined) === (now === undefined)) continue
    const show = (part: { readonly name?: string } | undefined) => (part ? (part.name ?? "one of your own") : "none")
    throw new GigpoError(
      "BAD_CONFIG",
      `The checkpoint ${directory} was written with another ${role}: it was ${show(before)} and is now ${show(now)}. ` +
        "Set it back to resume, or fork the run into a new folder.",
    )
  }
}

/** Gives every part back what it remembered. */
export async function restoreMemory(
  directory: string,
  parts: Parts,
  kept: Readonly<Record<string, PartMemory>>,
): Promise<void> {
  for (const [role, { json, arrays = {} }] of Object.entries(kept)) {
    if (json === undefined && Object.keys(arrays).length === 0) continue
    const read: Record<string, StateArray> = {}
    for (const [array, type] of Object.entries(arrays)) {
      const path = join(directory, fileOf(role, array))
      read[array] = new arrayTypes[type]((await io("read", path, readFile(path))).slice().buffer)
    }
    parts[role]?.restore?.({ ...(json !== undefined && { json }), arrays: read })
  }
}

function typeOf(values: StateArray, what: string): keyof typeof arrayTypes {
  for (const name of Object.keys(arrayTypes) as (keyof typeof arrayTypes)[])
    if (values instanceof arrayTypes[name]) return name
  throw new GigpoError("BAD_ARGUMENT", `${what} must be one of ${Object.keys(arrayTypes).join(", ")}.`)
}
