import { Random } from "../../../util/random.ts"
import { type RoomKind, rooms } from "./rooms.ts"

export interface Receptacle {
  readonly id: string
  readonly kind: string
  readonly location: string
}

/** Room with its receptacles. Determined by the number of the scene and the range of receptacles. */
export interface Scene {
  readonly room: RoomKind
  readonly receptacles: readonly Receptacle[]
}

const roomKinds = Object.keys(rooms) as RoomKind[]

/** Kind of room of a scene; the kinds alternate. */
export function roomOf(scene: number): RoomKind {
  return roomKinds[scene % roomKinds.length]!
}

export function layOut(scene: number, [least, most]: readonly [number, number]): Scene {
  const random = new Random(scene).derive("household scene")
  const room = roomOf(scene)
  const kinds = furnish(room, least + random.below(most - least + 1), random)
  const place = places(random)
  return {
    room,
    receptacles: kinds.map((kind) => ({ kind, id: receptacleId(kind, place), location: place.location() })),
  }
}

function furnish(room: RoomKind, count: number, random: Random): string[] {
  const { always, further } = rooms[room]
  const kinds = [...always]
  while (kinds.length < count) {
    const left = further.filter(([kind, , most]) => kinds.filter((one) => one === kind).length < most)
    kinds.push(drawWeighted(left, ([, weight]) => weight, random)[0])
  }
  return kinds
}

/**
 * Whether a scene is held out from training: one in eight, by a hash of its visible layout, so that a held-out room looks different from all
 * training rooms.
 */
export function isHeldOut({ room, receptacles }: Scene): boolean {
  const layout = receptacles.map(({ kind }) => kind).sort()
  return new Random(0).derive("household layout", room, layout.join(" ")).below(8) === 0
}

/** Item with probability in proportion to its weight. */
export function drawWeighted<T>(items: readonly T[], weight: (item: T, index: number) => number, random: Random): T {
  const weights = items.map(weight)
  let left = random.uniform() * weights.reduce((sum, one) => sum + one, 0)
  for (const [i, item] of items.entries()) {
    left -= weights[i]!
    if (left < 0) return item
  }
  return items.at(-1)!
}

/** Generator of unique places in a room. ALFWorld's ids consist of the kind of an object and its place. */
export interface Places {
  /** E.g. `Mug_bar__minus_00_dot_51_bar__plus_00_dot_47_bar__minus_00_dot_85`, in metres. */
  thing(kind: string): string
  /** E.g. `loc_bar__minus_4_bar_7_bar_1_bar_45`: position of an agent in steps of 0.25 m, its rotation and its horizon. */
  location(): string
}

export function places(random: Random): Places {
  const given = new Set<string>()
  const fresh = (draw: () => string): string => {
    let place = draw()
    while (given.has(place)) place = draw()
    given.add(place)
    return place
  }
  const metres = (low: number, high: number) => {
    const hundredths = low + random.below(high - low + 1)
    const digits = (Math.abs(hundredths) / 100).toFixed(2).padStart(5, "0").replace(".", "_dot_")
    return `${hundredths < 0 ? "_minus_" : "_plus_"}${digits}`
  }
  const steps = () => String(random.below(31) - 15).replace("-", "_minus_")
  return {
    thing: (kind) => fresh(() => [kind, metres(-375, 375), metres(0, 200), metres(-375, 375)].join("_bar_")),
    location: () => fresh(() => ["loc", steps(), steps(), random.below(4), 15 * random.below(5)].join("_bar_")),
  }
}

/** Id of a receptacle. Basins are named after their sink or bathtub: `Sink_bar_.._bar_SinkBasin`. */
function receptacleId(kind: string, place: Places): string {
  return kind.endsWith("Basin") ? `${place.thing(kind.replace("Basin", ""))}_bar_${kind}` : place.thing(kind)
}
