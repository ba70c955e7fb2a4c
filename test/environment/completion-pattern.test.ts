import { describe, expect, it } from "vitest"
import { alfworld } from "../../src/environment/alfworld/alfworld.ts"
import { blackjack } from "../../src/environment/cards/blackjack.ts"
import { ezPoints } from "../../src/environment/cards/ez-points.ts"
import { numberLine } from "../../src/environment/cards/number-line.ts"
import { points24 } from "../../src/environment/cards/points24.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { lookFirst } from "../../src/environment/look-first.ts"
import { planFirst } from "../../src/environment/plan-first.ts"
import { search } from "../../src/environment/search/search.ts"
import { sokoban } from "../../src/environment/sokoban/sokoban.ts"
import { sql } from "../../src/environment/sql/sql.ts"
import { webshop } from "../../src/environment/webshop/webshop.ts"
import { patternText } from "../../src/grammar/pattern.ts"
import { checkEnvironment } from "../../src/rollout/check-environment.ts"
import { Random } from "../../src/util/random.ts"
import { draw } from "../grammar/texts.ts"

type Thinking = "required" | "optional" | "off"

const environments: Readonly<Record<string, (thinking: Thinking) => Environment | Promise<Environment>>> = {
  sokoban: (thinking) => sokoban({ thinking }) as Environment,
  alfworld: async (thinking) => (await alfworld({ thinking })) as Environment,
  webshop: async (thinking) => (await webshop({ thinking })) as Environment,
  search: async (thinking) => (await search({ thinking })) as Environment,
  sql: async (thinking) => (await sql({ thinking })) as Environment,
  ...Object.fromEntries(
    Object.entries({ numberLine, blackjack, ezPoints, points24 }).flatMap(([name, make]) =>
      (["tags", "json"] as const).map((completionFormat) => [
        `${name}, ${completionFormat}`,
        (thinking: Thinking) => make({ completionFormat, thinking }) as Environment,
      ]),
    ),
  ),
}

const cases = Object.keys(environments).flatMap((name) =>
  (["required", "optional", "off"] as const).map((thinking) => [name, thinking] as const),
)

it.each(cases)("every completion that matches the pattern of %s is valid (thinking %s)", async (name, thinking) => {
  const environment = await environments[name]!(thinking)
  const random = new Random(7).derive(name, thinking)
  for (const task of [...take(environment.tasks("train", random), 2)]) {
    const context = { signal: AbortSignal.timeout(60_000), random }
    const episode = await environment.start(task, context)
    let now = episode.first
    try {
      for (let step = 0; step < 3; step++) {
        const pattern = environment.completionPattern!(now)!
        const whole = new RegExp(`^(?:${pattern})$`, "u")
        const completions = Array.from({ length: 10 }, () => draw(patternText(pattern), (n) => random.below(n), 400))
        const found = completions.filter((completion) => completion !== undefined)
        for (const completion of found) {
          expect(completion).toMatch(whole)
          expect([completion, environment.parse(completion, now).valid]).toEqual([completion, true])
        }
        const expert = environment.expert?.(task).complete(now, [])
        if (expert !== undefined && step === 0) expect(expert).toMatch(whole)
        if (found.length === 0) break
        const result = await episode.step(environment.parse(found[0]!, now).action)
        if (result.terminated || result.truncated) break
        now = result.observation
      }
    } finally {
      await episode[Symbol.asyncDispose]?.()
    }
  }
})

describe("wrappers", () => {
  it("do not constrain the plan, but the actions", () => {
    const { completionPattern } = planFirst(sokoban({ thinking: "off" }))
    expect(completionPattern?.({ text: "", anchor: "", planning: true } as never)).toBeUndefined()
    expect(completionPattern?.({ text: "", anchor: "" })).toContain("<action>")
    expect(lookFirst(sokoban()).completionPattern?.({ text: "", anchor: "" })).toContain("<think>")
  })
})

it("the completion pattern is absent with custom parsing", () => {
  expect(sokoban({ parse: (action) => ({ action, valid: true }) }).completionPattern).toBeUndefined()
})

it("the completion pattern is compared with the expert by checkEnvironment", async () => {
  const environment = sokoban({ thinking: "off" })
  await checkEnvironment(environment, { tasks: 1 })
  const other = { ...environment, completionPattern: () => "(?:up|down)" }
  await expect(checkEnvironment(other, { tasks: 1 })).rejects.toThrow(
    /completionPattern must match the expert's completion/,
  )
  const invalid = { ...environment, completionPattern: () => "(?=a)" }
  await expect(checkEnvironment(invalid, { tasks: 1 })).rejects.toThrow(/lookaround/)
})

function* take<T>(list: Iterable<T>, count: number): Iterable<T> {
  let taken = 0
  for (const one of list) {
    if (taken++ === count) return
    yield one
  }
}
