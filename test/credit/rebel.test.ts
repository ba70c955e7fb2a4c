import { describe, expect, it } from "vitest"
import { beliefKey } from "../../src/credit/belief-key.ts"
import { rebel } from "../../src/credit/rebel.ts"
import { expectClose } from "./close.ts"
import {
  advantagesOf,
  amongPeers,
  deviation,
  equalEpisodes,
  expectOrderless,
  fromOn,
  keyOf,
  mean,
  sum,
  type Told,
  worlds,
} from "./worlds.ts"

const gamma = 0.95
const options = {
  belief: ({ observation }: { observation: { anchor: string } }) =>
    observation.anchor === "s2" ? "lost" : "on the way",
  beliefRewards: ["belief", "format"],
  beliefWeights: [0.5, -2],
  kind: undefined,
} as const

const believed = ({ metrics }: Told) => 0.5 * (metrics.belief ?? 0) - 2 * (metrics.format ?? 0)

interface Convention {
  readonly beliefInReward: boolean
  readonly normalization: "none" | "sample"
  readonly omega: number
}

function definition(steps: readonly Told[], { beliefInReward, normalization, omega }: Convention): number[] {
  const outcome = (step: Told) =>
    sum(
      steps
        .filter((other) => keyOf(other) === keyOf(step))
        .map((other) => other.reward - (beliefInReward ? believed(other) : 0)),
    )
  const compare = (value: number, peers: readonly number[]) =>
    (value - mean(peers)) / (normalization === "sample" ? deviation(peers) + 1e-6 : 1)
  const firsts = steps.filter(({ turn }) => turn === 0)
  const episodes = amongPeers(firsts, ({ task }) => String(task), outcome, compare)
  const belief = ({ task, anchor }: Told) => `${task} ${anchor === "s2"}`
  const late = (step: Told) => gamma ** (fromOn(steps, step).length - 1) * outcome(step)
  const own = (step: Told) => sum(fromOn(steps, step).map((other, later) => gamma ** later * believed(other)))
  const channels = [late, own].map((value) => amongPeers(steps, belief, value, compare))
  return steps.map((step, row) => {
    const first = firsts.findIndex((other) => keyOf(other) === keyOf(step))
    return episodes[first]! + omega * (channels[0]![row]! + channels[1]![row]!)
  })
}

describe("rebel", () => {
  it.each<Convention>([
    { beliefInReward: true, normalization: "none", omega: 0.5 },
    { beliefInReward: false, normalization: "none", omega: 1 },
    { beliefInReward: true, normalization: "sample", omega: 0.5 },
  ])("gives what its definition says, with %j", async (convention) => {
    for (const steps of worlds)
      expectClose(await advantagesOf(rebel({ ...options, ...convention }), steps), definition(steps, convention), 1e-9)
  })

  it("normalizes kinds of task separately, weighted by their failure rate", async () => {
    const convention = { beliefInReward: true, normalization: "none", omega: 0.5 } as const
    for (const [minSteps, minStd] of [
      [2, 0.1],
      [1000, 0.1],
      [2, 1000],
    ] as const)
      for (const steps of worlds) {
        const joint = definition(steps, convention)
        const expected = steps.map((step, row) => {
          const kind = (other: Told) => other.metrics.kind
          const own = joint.filter((_, other) => kind(steps[other]!) === kind(step))
          const lasts = steps.filter((other) => other.last && kind(other) === kind(step))
          const share = mean(lasts.map(({ metrics }) => (metrics.success === 1 ? 1 : 0)))
          const weight = Math.min(Math.max(((1 - share) / 0.15) ** 2, 0.3), 3)
          const peers = own.length < minSteps ? joint : own
          const width = deviation(peers)
          const divide = own.length < minSteps || width >= minStd
          return (weight * (joint[row]! - mean(peers))) / (divide ? width + 1e-6 : 1)
        })
        const kinds = { kind: "kind", minSteps, minStd, weighKinds: true }
        expectClose(await advantagesOf(rebel({ ...options, ...kinds }), steps), expected, 1e-9)
      }
  })

  it("does not depend on the order of episodes", () => expectOrderless(() => rebel({ ...options, kind: "kind" })))

  it("gives exactly 0 for equal rewards", async () => {
    for (const reward of [10, 0.1, -3e7])
      for (const kind of [undefined, "kind"])
        expect(
          (
            await advantagesOf(
              rebel({ ...options, kind, belief: ({ observation }) => observation.anchor }),
              equalEpisodes(reward),
            )
          ).every((value) => value === 0),
        ).toBe(true)
  })

  it("rejects weights of the wrong number, missing metrics and invalid keys", async () => {
    expect(() => rebel({ beliefWeights: [1] })).toThrow(/there are 1 beliefWeights for 4 beliefRewards/)
    await expect(advantagesOf(rebel(), worlds[0]!)).rejects.toThrow(
      /no step has the metric "belief-state"; there are "belief"/,
    )
    const odd = rebel({ ...options, belief: () => null as unknown as string })
    await expect(advantagesOf(odd, worlds[0]!)).rejects.toThrow(
      /rebel: the key of step 0 is null; give a string or a number/,
    )
    expect(() => rebel({ belief: 7 as unknown as string })).toThrow(
      /belief must be the name of a metric of steps, or a function/,
    )
  })
})

describe("beliefKey", () => {
  const key = (belief: unknown) =>
    beliefKey({ text: `so <belief>${JSON.stringify(belief)}</belief><action>go</action>` })
  const apple = { task: { phase: "Find", target: "the apple 1." }, state: { objects: { key: "drawer" }, states: {} } }

  it("is equal for equal beliefs", () => {
    expect(key({ task: { phase: "find ", target: "Apple 1" }, state: null })).toBe(key(apple))
  })

  it("distinguishes targets by number, phases, held objects and changes", () => {
    const others = [
      { ...apple, task: { ...apple.task, target: "apple 2" } },
      { ...apple, task: { ...apple.task, phase: "take" } },
      { ...apple, state: { objects: { apple: "IN_HAND" } } },
      { ...apple, state: { states: { apple: "hot" } } },
    ]
    expect(new Set([apple, ...others].map(key)).size).toBe(5)
  })

  it("is a common key for all unreadable beliefs", () => {
    for (const text of ["", "<belief>{</belief>", "<belief>7</belief>", "{}"])
      expect(beliefKey({ text })).toBe("unreadable")
  })
})
