import type { Receptacle } from "./scene.ts"
import { fits, objectKinds, openable } from "./things.ts"

/** Object with the receptacle in or on which it starts. */
export interface Placed {
  readonly id: string
  readonly kind: string
  readonly receptacle: Receptacle
}

/** Household in its start state. */
export interface Household {
  readonly receptacles: readonly Receptacle[]
  readonly objects: readonly Placed[]
  /** Location of the agent. */
  readonly location: string
}

/** Kinds that the domain mentions and every problem must declare. */
const named = { objects: ["Knife", "ButterKnife"], receptacles: ["SinkBasin", "Microwave", "Fridge"] }

/** PDDL problem of ALFWorld's domain for a household and its goal. */
export function problemText(name: string, { receptacles, objects, location }: Household, goal: string): string {
  const receptacleKinds = unique(receptacles.map(({ kind }) => kind))
  const kinds = unique(objects.map(({ kind }) => kind))
  const declarations = [
    "agent1 - agent",
    ...unique([...kinds, ...named.objects]).map((kind) => `${kind}Type - otype`),
    ...unique([...receptacleKinds, ...named.receptacles]).map((kind) => `${kind}Type - rtype`),
    ...[location, ...receptacles.map((receptacle) => receptacle.location)].map((place) => `${place} - location`),
    ...receptacles.map(({ id }) => `${id} - receptacle`),
    ...objects.map(({ id }) => `${id} - object`),
  ]
  const facts = [
    `atLocation agent1 ${location}`,
    ...receptacleKinds.flatMap((receptacle) =>
      kinds.filter((kind) => fits(kind, receptacle)).map((kind) => `canContain ${receptacle}Type ${kind}Type`),
    ),
    ...receptacles.flatMap(({ id, kind, location }) => [
      `receptacleType ${id} ${kind}Type`,
      `receptacleAtLocation ${id} ${location}`,
      ...(openable.has(kind) ? [`openable ${id}`] : []),
    ]),
    ...objects.flatMap(({ id, kind, receptacle }) => [
      `objectType ${id} ${kind}Type`,
      `objectAtLocation ${id} ${receptacle.location}`,
      `inReceptacle ${id} ${receptacle.id}`,
      ...abilities(kind).map((predicate) => `${predicate} ${id}`),
    ]),
  ]
  return `(define (problem ${name})
(:domain alfred)
(:objects
${declarations.map((declaration) => `  ${declaration}`).join("\n")}
)
(:init
${facts.map((fact) => `  (${fact})`).join("\n")}
)
(:goal
  ${goal}
))
`
}

/** Predicates for the abilities of an object. An object that cannot be switched on can be carried. */
function abilities(kind: string): string[] {
  const can = [...objectKinds.get(kind)!.can]
  const predicates = can.map((ability) => (ability === "contain" ? "isReceptacleObject" : `${ability}able`))
  return can.includes("toggle") ? predicates : ["pickupable", ...predicates]
}

function unique<T>(items: readonly T[]): T[] {
  return [...new Set(items)]
}
