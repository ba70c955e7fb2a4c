import type { Game, World } from "../game.ts"
import { type Goal, kindOf } from "./goal.ts"
import type { Home, Receptacle, Thing } from "./home.ts"

/** Current state of a household, including facts that an agent cannot observe. */
export function survey(game: Game, world: World, goal: Goal): Home {
  const placeOf = new Map(game.facts("receptacleatlocation").map(([receptacle, place]) => [receptacle!, place!]))
  const portable = new Set(game.facts("pickupable").map(([thing]) => thing!))
  const can = new Set(game.facts("cancontain").map((types) => types.join(" ")))
  const typeOf = new Map<string, string>()
  const receptacles = new Map<string, Receptacle>()
  for (const [id, type] of game.facts("receptacletype")) {
    const place = placeOf.get(id!)
    if (place === undefined) continue
    typeOf.set(game.name(id!), type!)
    const closed = world.holds("openable", id!) && !world.holds("opened", id!)
    receptacles.set(game.name(id!), { kind: kindOf(type)!, place, closed })
  }
  const inside = new Map<string, string[]>()
  for (const [thing, id] of world.facts("inreceptacle")) {
    const receptacle = game.name(id!)
    // Receptacles without a location cannot be used.
    if (receptacles.has(receptacle)) inside.set(thing!, [...(inside.get(thing!) ?? []), receptacle])
  }
  const things = new Map<string, Thing>()
  for (const [id, type] of game.facts("objecttype")) {
    typeOf.set(game.name(id!), type!)
    const canUse = portable.has(id!) || kindOf(type) === goal.target
    things.set(game.name(id!), {
      kind: kindOf(type)!,
      receptacles: canUse ? (inside.get(id!) ?? []) : [],
      treated: goal.treatment !== undefined && world.holds(goal.treatment.result, id!),
      lit: world.holds("istoggled", id!),
    })
  }
  const held = world.facts("holds")[0]?.[1]
  return {
    receptacles,
    things,
    here: world.facts("atlocation")[0]?.[1] ?? "",
    held: held === undefined ? undefined : game.name(held),
    fits: (thing, receptacle) => can.has(`${typeOf.get(receptacle)} ${typeOf.get(thing)}`),
  }
}
