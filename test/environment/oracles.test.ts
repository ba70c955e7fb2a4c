import { describe, expect, it } from "vitest"
import { blackjack } from "../../src/environment/cards/blackjack.ts"
import { numberLine } from "../../src/environment/cards/number-line.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { lookFirst } from "../../src/environment/look-first.ts"
import { planFirst } from "../../src/environment/plan-first.ts"
import { search } from "../../src/environment/search/search.ts"
import { isSolved, move } from "../../src/environment/sokoban/move.ts"
import { directions, formatRoom, parseRoom } from "../../src/environment/sokoban/room.ts"
import { sokoban } from "../../src/environment/sokoban/sokoban.ts"
import { type SqlTask, sql } from "../../src/environment/sql/sql.ts"
import { takeTasks } from "../../src/rollout/tasks.ts"
import { Random } from "../../src/util/random.ts"

// Oracles of environments: verification scores of actions, and correct answers.

/** Number of moves to a solution by a breadth-first search without any pruning; Infinity without a solution. */
function distance(text: string): number {
  let at = new Map([[text, parseRoom(text)]])
  const seen = new Set(at.keys())
  for (let moves = 0; at.size > 0; moves++) {
    const next: typeof at = new Map()
    for (const room of at.values()) {
      if (isSolved(room)) return moves
      for (const direction of directions) {
        const moved = move(room, direction)
        const name = formatRoom(moved)
        if (!seen.has(name)) next.set(name, moved)
        seen.add(name)
      }
    }
    at = next
  }
  return Number.POSITIVE_INFINITY
}

const observed = (text: string) => ({ text, anchor: text })

describe("the oracle of sokoban", () => {
  it("says which moves are on a shortest solution, change nothing, or leave none", async () => {
    const environment = sokoban({ boxes: 1 })
    const found = new Set<string>()
    for (const task of takeTasks(environment, "train", new Random(3), 3)) {
      let text = formatRoom(parseRoom(task.room))
      for (let walked = 0; walked < 6; walked++) {
        const here = distance(text)
        for (const direction of [...directions, "still"] as const) {
          const next = direction === "still" ? text : formatRoom(move(parseRoom(text), direction))
          const there = distance(next)
          const expected = next === text || there === Number.POSITIVE_INFINITY ? -1 : Number(there < here)
          expect([direction, environment.verify!(task, observed(text), direction)]).toEqual([direction, expected])
          found.add(`${expected} ${next === text}`)
        }
        const on = directions.map((one) => formatRoom(move(parseRoom(text), one)))
        text = on.filter((one) => one !== text && distance(one) < Number.POSITIVE_INFINITY)[walked % 2] ?? text
      }
    }
    expect([...found].sort()).toEqual(["-1 false", "-1 true", "0 false", "1 false"])
    const corner = "#####\n#__O#\n#_XP#\n#####"
    expect(environment.verify!({ seed: 0, room: corner }, observed(corner), "up")).toBe(undefined) // the box stays below
  })
})

describe("oracles of card games", () => {
  it.each([
    [numberLine(), "Target: 3\nCurrent: 1", { "+": 1, "-": 0 }],
    [numberLine(), "Target: 0\nCurrent: 4", { "+": 0, "-": 1 }],
    [blackjack(), "Dealer: 6 ?\nYou: K Q", { stand: 1, hit: 0 }],
    [blackjack(), "Dealer: 6 ?\nYou: 2 3", { stand: 0, hit: 1 }],
  ])("%# score the best action 1, the other 0, and no action -1", (environment, text, expected) => {
    const scores = Object.keys(expected).map((action) => [
      action,
      environment.verify!(1 as never, observed(text), action),
    ])
    expect(Object.fromEntries(scores)).toEqual(expected)
    const { action } = environment.parse("?", observed(text))
    expect(environment.verify!(1 as never, observed(text), action)).toBe(-1)
  })

  it("have none where several actions may be the best", async () => {
    const { points24 } = await import("../../src/environment/cards/points24.ts")
    expect(points24().verify).toBeUndefined()
  })
})

describe("the oracle of sql", () => {
  const task: SqlTask = {
    id: "one",
    database: { script: "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y')" },
    question: "Which?",
    gold: "SELECT b FROM t WHERE a = 2",
  }

  it.each([
    ["<answer>SELECT 'y'</answer>", 1],
    ["<sql>SELECT b FROM t WHERE a > 1</sql>", 1],
    ["<sql>SELECT * FROM t</sql>", 0],
    ["<answer>SELECT * FROM t</answer>", -1],
    ["<sql>SELECT c FROM t</sql>", -1],
    ["<sql>DROP TABLE t</sql>", -1],
    ["", -1],
  ])("compares the rows of %s", async (action, score) => {
    const { verify } = (await sql()) as Environment<SqlTask>
    expect(await verify!(task, observed("?"), action)).toBe(score)
  })
})

describe("correct answers", () => {
  it("are completions that the environment takes, also in wrappers", async () => {
    for (const environment of [await search(), await sql({ thinking: "required" })] as readonly Environment[])
      for (const wrap of [(one: Environment) => one, planFirst, lookFirst]) {
        const wrapped = wrap(environment)
        const [task] = takeTasks(environment, "train", new Random(1), 1)
        const { before, text } = wrapped.answer!(task)!
        const episode = await environment.start(task, { signal: new AbortController().signal, random: new Random(1) })
        const { action, valid } = environment.parse(`${before}${text}</answer>`, episode.first)
        expect(valid).toBe(true)
        expect(await episode.step(action)).toMatchObject({ reward: 1, terminated: true })
        await episode[Symbol.asyncDispose]?.()
      }
  })

  it("and scores pass through wrappers, except for the completion that is a plan", () => {
    const [task] = takeTasks(sokoban(), "train", new Random(1), 1)
    const now = observed(formatRoom(parseRoom(task!.room)))
    const best = (environment: Environment<NonNullable<typeof task>>, extra = {}) =>
      directions.map((one) => environment.verify!(task!, { ...now, ...extra }, one))
    expect(best(planFirst(sokoban()))).toEqual(best(sokoban()))
    expect(best(lookFirst(sokoban()))).toEqual(best(sokoban()))
    expect(best(planFirst(sokoban()), { planning: true })).toEqual([undefined, undefined, undefined, undefined])
  })
})
