import { Game, type World } from "../../../src/environment/alfworld/game.ts"
import type { GameFile } from "../../../src/environment/alfworld/game-file.ts"

export interface Tiny {
  readonly types?: string
  readonly constants?: string
  /** PDDL of `:predicates`; those that the actions and the goal speak of where none are given. */
  readonly predicates?: string
  /** PDDL after `(:action NAME`, by name. */
  readonly actions?: Readonly<Record<string, string>>
  readonly objects?: string
  readonly init?: string
  readonly goal?: string
  /** Rules by symbol; a text stands for one rule without a condition. */
  readonly rules?: Readonly<Record<string, string | readonly { condition?: string; rhs: string }[]>>
  /** Template and feedback by action; the name of the action where none are given. */
  readonly wordings?: Readonly<Record<string, readonly [template: string, feedback: string]>>
}

/** The texts of a hand-written game of a few lines. */
export function tinyFile(tiny: Tiny): GameFile {
  const { types = "place thing", constants = "", actions = {}, objects = "", init = "", goal = "(not (over))" } = tiny
  const { rules = {}, wordings = {} } = tiny
  const { predicates = spokenOf([goal, ...Object.values(actions)]) } = tiny
  const json = Object.entries({ intro: "Hello.", ...rules }).map(([symbol, rule]) => [
    symbol,
    typeof rule === "string" ? [{ rhs: rule }] : rule,
  ])
  const words = Object.keys(actions).map((name) => {
    const [template, feedback] = wordings[name] ?? [name, "Done."]
    return `action ${name} { template :: "${template}"; feedback :: "${feedback}"; }`
  })
  return {
    domain: `(define (domain tiny) (:requirements :adl) (:types ${types}) (:constants ${constants})
      (:predicates ${predicates})
      ${Object.entries(actions)
        .map(([name, text]) => `(:action ${name} ${text})`)
        .join("\n")})`,
    grammar: `grammar :: """${JSON.stringify(Object.fromEntries(json))}""";\n${words.join("\n")}`,
    problem: `(define (problem p) (:domain tiny) (:objects ${objects}) (:init ${init}) (:goal ${goal}))`,
  }
}

export function tiny(game: Tiny): World {
  return Game.parse(tinyFile(game)).start()
}

/** Declarations of what stands in parentheses around bare words. */
function spokenOf(texts: readonly string[]): string {
  const declared = new Map<string, string>()
  for (const [, name, words] of texts.join(" ").matchAll(/\(([a-z][\w-]*)((?:\s+[?\w-]+)*)\s*\)/gi)) {
    const parameters = words!.split(/\s+/).filter(Boolean)
    declared.set(name!.toLowerCase(), `(${[name, ...parameters.map((_, i) => `?${i}`)].join(" ")})`)
  }
  for (const word of ["and", "or", "not"]) declared.delete(word)
  return [...declared.values()].join(" ")
}
