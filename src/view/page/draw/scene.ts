/** Scene of a household observation: current place, objects there, carried objects. */
export interface Scene {
  /** Receptacles around the middle of the room. */
  readonly around?: readonly string[]
  readonly place?: string
  readonly isClosed?: boolean
  /** Objects at the place; absent if unknown. */
  readonly things?: readonly string[]
  readonly carried?: readonly string[]
}

const name = "[A-Za-z]{1,40} \\d{1,4}"
const list = `(nothing|an? ${name}(?:, (?:and )?an? ${name}){0,60})`

type Read = (parts: readonly string[]) => Scene

/** Sentences of ALFWorld in both wordings; the first match is used. */
const sentences: readonly (readonly [RegExp, Read])[] = [
  [
    sentence(`You are in the middle of a room\\. Looking quickly around you, you see ${list}\\.`),
    ([all]) => ({ around: read(all!) }),
  ],
  [sentence(`The (${name}) is closed\\.`), ([place]) => ({ place: place!, isClosed: true })],
  [sentence(`You close the (${name})\\.`), ([place]) => ({ place: place!, isClosed: true })],
  [
    sentence(`The (${name}) is open\\. In it, you see ${list}\\.`),
    ([place, all]) => ({ place: place!, things: read(all!) }),
  ],
  [sentence(`On the (${name}), you see ${list}\\.`), ([place, all]) => ({ place: place!, things: read(all!) })],
  [sentence(`You are facing the (${name})\\. Next to it, you see ${list}\\.`), ([place]) => ({ place: place! })],
  [
    sentence(`You pick up the (${name}) from the (${name})\\.`),
    ([thing, place]) => ({ place: place!, carried: [thing!] }),
  ],
  [
    sentence(`You (?:clean|heat|cool) the (${name}) using the (${name})\\.`),
    ([thing, place]) => ({ place: place!, carried: [thing!] }),
  ],
  [
    sentence(`You (?:move|put) the (${name}) (?:to|in/on) the (${name})\\.`),
    ([thing, place]) => ({ place: place!, things: [thing!], carried: [] }),
  ],
  [sentence(`You are carrying: ${list}\\.`), ([all]) => ({ carried: read(all!) })],
  [sentence("You are not carrying anything\\."), () => ({ carried: [] })],
]

export function readScene(observation: string): Scene | undefined {
  for (const [pattern, scene] of sentences) {
    const found = pattern.exec(observation)
    if (found) return scene(found.slice(1))
  }
  return undefined
}

/** Pattern of a sentence at the beginning of a line or after another sentence. */
function sentence(pattern: string): RegExp {
  return new RegExp(`(?:^|\\. )${pattern}`, "m")
}

function read(all: string): string[] {
  return all === "nothing" ? [] : all.split(/, (?:and )?/).map((thing) => thing.replace(/^an? /, ""))
}
