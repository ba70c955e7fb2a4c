import { describe, expect, it } from "vitest"
import type { Sequence } from "../../src/engine/sequence.ts"
import type { TrainSetup } from "../../src/training/prepare.ts"
import { makeSight, withTextsInFront } from "../../src/training/privileged.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { characters, TablePolicy } from "./table-policy.ts"
import { tableSetup } from "./table-setup.ts"
import { openDoors, TinyModel } from "./tiny.ts"

/** Teacher that keeps what it sees. */
class Recording extends TablePolicy {
  readonly rows: Sequence[] = []

  override async logProbs(...given: Parameters<TablePolicy["logProbs"]>) {
    this.rows.push(...given[0])
    return await super.logProbs(...given)
  }
}

const loss = { name: "distillation" } as const
/** The tokens of a prompt of these codecs are reversed. */
const textOf = (tokens: Int32Array) => characters.decode(tokens.slice().reverse())

describe("a privileged teacher", () => {
  const shown = async (
    context: NonNullable<TrainSetup["privileged"]>["context"],
    changes: Pick<TrainSetup, "environment" | "groups" | "groupSize"> = {},
  ) => {
    const teacher = new Recording()
    const privileged = { model: "teacher", context } as const
    const reports = await train({ ...tableSetup({ iterations: 1 }), ...changes, loss, privileged, teacher })
    return { rows: teacher.rows, metrics: reports[0]!.metrics }
  }

  it("sees the outcome of the episode in front of the same tokens", async () => {
    const plain = new Recording()
    const { rows: own } = await shown(() => undefined)
    await train({ ...tableSetup({ iterations: 1 }), loss, teacher: plain })
    expect(own).toEqual(plain.rows)
    const { rows, metrics } = await shown("feedback")
    expect(rows).toHaveLength(plain.rows.length)
    let extra = 0
    for (const [at, { tokens, segments }] of rows.entries()) {
      const without = plain.rows[at]!
      const more = tokens.length - without.tokens.length
      expect(more).toBeGreaterThan(0)
      expect([...tokens.subarray(more)]).toEqual([...without.tokens])
      expect(segments).toEqual(without.segments.map((segment) => ({ ...segment, start: segment.start + more })))
      expect(textOf(tokens.slice(0, more))).toMatch(
        /^What follows the actions .* earns \d:\n1\. (a|b|c|wait) \(reward [01]\)/,
      )
      extra += more
    }
    expect(metrics["teacher/extra-tokens"]).toBeCloseTo(extra / rows.length, 9)
  })

  it("sees the last skill that the best other episode noted, if that is no worse", async () => {
    const sight = makeSight({ model: "policy", context: "skill" }, { rollout: {} } as never)
    const seenBy = async (...episodes: readonly (readonly [number, ...string[]])[]) => {
      const steps = episodes.flatMap(([reward, ...texts], episode) =>
        texts.map((text, at) => ({ episode, record: { text, action: "a", reward: at === 0 ? reward : 0 } })),
      )
      return [...(await sight({ task: 0 } as never, steps as never))]
    }
    const noted = (...skills: readonly string[]) => skills.map((skill) => `<skill>${skill}</skill><action>a</action>`)
    const text = "What helps in the task that follows:\nopen drawers"
    expect(
      await seenBy([1, ...noted("look", "open drawers"), "none"], [0, "none"], [1, ...noted("open drawers")]),
    ).toEqual([
      [0, text],
      [1, text],
      [2, text],
    ])
    expect(await seenBy([1, ...noted("open drawers")], [0, ...noted("wait")])).toEqual([[1, text]])
    expect(await seenBy([1, ...noted("open drawers")], [1, "none"])).toEqual([])
    expect(await seenBy([1, "none", ...noted("")], [0, "none"])).toEqual([])
  })

  it("sees the best other episode of the group, if that is no worse", async () => {
    const seen: { readonly returns: readonly number[]; readonly own: number }[] = []
    const note = (own: readonly { episode: number; record: { reward: number } }[], group: typeof own) => {
      const of = (id: number) =>
        group.filter(({ episode }) => episode === id).reduce((sum, { record }) => sum + record.reward, 0)
      seen.push({ returns: [...new Set(group.map(({ episode }) => episode))].map(of), own: of(own[0]!.episode) })
      return undefined
    }
    const how = { groups: 6, groupSize: 4 }
    const { rows: bare } = await shown(note, how)
    const { rows } = await shown("best-episode", how)
    const episodes = [...new Set(rows.map(({ segments }) => `${segments[0]!.task} ${segments[0]!.episode}`))]
    expect(seen).toHaveLength(episodes.length)
    let [told, untold] = [0, 0]
    for (const [at, { tokens, segments }] of rows.entries()) {
      const { returns, own } = seen[episodes.indexOf(`${segments[0]!.task} ${segments[0]!.episode}`)]!
      const best = Math.max(...returns)
      const alone = own === best && returns.filter((one) => one === best).length === 1
      const note = textOf(tokens.slice(0, tokens.length - bare[at]!.tokens.length))
      if (Math.min(...returns) === best || alone) untold++
      else told++
      expect(note === "").toBe(Math.min(...returns) === best || alone)
      if (note !== "") expect(note).toMatch(new RegExp(`^Actions of an attempt .* earned ${best}:\n1\\. `))
    }
    expect(Math.min(told, untold)).toBeGreaterThan(0)
  })

  it("sees the expert's actions", async () => {
    const { rows } = await shown("expert", { environment: doorsEnvironment() })
    for (const { tokens } of rows)
      expect(textOf(tokens)).toMatch(/A solution of the task .*:\n1\. [abc]\n2\. [abc]\n3\. [abc]/)
    const { expert: _, ...environment } = openDoors()
    await expect(shown("expert", { environment })).rejects.toThrow(
      /^The privileged teacher needs an expert, which the environment doors does not have/,
    )
  })

  it("may be the policy itself, or the frozen reference", async () => {
    // One update in each iteration, before which the policy is the one that scores.
    const setup = () => ({
      ...tableSetup({ iterations: 3, stepsPerUpdate: 1000, epochs: 1 }),
      loss: { teacherWeight: 0.5 },
    })
    for (const model of ["policy", "reference"] as const) {
      const reports = await train({ ...setup(), privileged: { model, context: () => undefined } })
      const gaps = reports.map(({ metrics }) => metrics["teacher/log-ratio"]!)
      expect(Math.abs(gaps[0]!)).toBeLessThan(1e-6)
      if (model === "policy") expect(Math.abs(gaps[2]!)).toBeLessThan(1e-6)
      else expect(Math.abs(gaps[2]!)).toBeGreaterThan(1e-4)
    }
  })

  it("is rejected where it has no effect, or gives no text", async () => {
    await expect(train({ ...tableSetup(), privileged: {} })).rejects.toThrow(
      /^train: privileged has no effect without a loss or estimator that learns from a teacher/,
    )
    await expect(train({ ...tableSetup(), loss, privileged: { model: "teacher" } })).rejects.toThrow(
      /^distillation needs a teacher: give one/,
    )
    await expect(shown((() => 3) as never)).rejects.toThrow(/privileged\.context returned a value of type number/)
    await expect(shown("answer" as never)).rejects.toThrow(/privileged\.context must be one of "best-episode", /)
  })
})

describe("texts in front of sequences", () => {
  const row = (...tokens: number[]): Sequence => ({
    tokens: Int32Array.from(tokens),
    segments: [{ start: 2, length: 1 }],
  })
  const coded = {
    ...characters,
    encodeChat: async ([message]: readonly { content: string }[]) => ({ tokens: characters.encode(message!.content) }),
  }
  const place = async (text: string, longest: number, tokenizer: object = coded) => {
    const [found] = await withTextsInFront([row(1, 2, 3)], [text], tokenizer as never, longest)
    return [
      String.fromCharCode(...found!.tokens.map((token) => (token < 10 ? token + 48 : token))),
      found!.segments[0]!.start,
    ]
  }

  it("are shortened in their middle where they do not fit", async () => {
    const text = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"
    expect(await place(text, 100)).toEqual([`${text}123`, 48])
    expect(await place(text, 43)).toEqual([`${text.slice(0, 24)}${text.slice(-16)}123`, 42])
    expect(await place(text, 7)).toEqual(["abIJ123", 6])
    expect(await place(text, 3)).toEqual(["123", 2])
    expect(await place(text, 2)).toEqual(["123", 2])
  })

  it("keep a token that begins every text", async () => {
    const beginning = {
      ...coded,
      textPrefix: Int32Array.of(1),
      encodeChat: async () => ({ tokens: Int32Array.of(1, 8, 9) }),
    }
    expect(await place("note", 100, beginning)).toEqual(["18923", 4])
  })
})

describe("the policy of the engine", () => {
  const model = new TinyModel(doorsEnvironment())

  it("scores the same tokens otherwise where it sees more", async () => {
    const gaps = await Promise.all(
      ([undefined, "feedback"] as const).map(async (sees) => {
        const { policy, tokenizer } = await model.open()
        const reports = await train({
          ...{
            policy,
            tokenizer,
            environment: openDoors(),
            iterations: 2,
            groups: 2,
            groupSize: 4,
            stepsPerUpdate: 64,
            epochs: 1,
          },
          ...{ rollout: { maxCompletionTokens: 4 }, loss: { name: "distillation", estimator: "abs" } },
          privileged: { context: sees ?? (() => undefined) },
        })
        return reports[0]!.metrics["distillation/divergence"]!
      }),
    )
    expect(gaps[0]).toBeLessThan(1e-5)
    expect(gaps[1]).toBeGreaterThan(1e-3)
  })
})
