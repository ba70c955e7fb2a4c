import { expect, it, vi } from "vitest"
import type { Sequence } from "../../src/engine/sequence.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { train } from "../../src/training/train.ts"
import { characters } from "./table-policy.ts"
import { tableSetup } from "./table-setup.ts"
import { openReadableDoors } from "./tiny.ts"

const dagger = {
  loss: { name: "chord", peak: 1, valley: 1, phi: false },
  expertData: { states: "policy" },
} as const

it("the expert labels every state that the policy visits, and the policy learns the labels", async () => {
  const environment = openReadableDoors() as Environment
  const asked: [string, number][] = []
  const expert: Environment["expert"] = (task) => {
    const own = environment.expert!(task)
    return {
      complete(now, history) {
        asked.push([now.text, history.length])
        return own.complete(now, history)
      },
    }
  }
  const setup = tableSetup({ iterations: 4, stepsPerUpdate: 256, environment: { ...environment, expert } })
  const batches: (readonly Sequence[])[] = []
  const { forwardBackward } = setup.policy
  vi.spyOn(setup.policy, "forwardBackward").mockImplementation((rows, ...rest) => {
    batches.push(rows)
    return forwardBackward.call(setup.policy, rows, ...rest)
  })
  const reports = await train({ ...setup, ...dagger } as never)
  const rows = batches[0]!
  const of = (kind: boolean) => rows.filter(({ segments }) => (segments[0]!.offPolicy === true) === kind)
  const prompts = (own: readonly Sequence[]) =>
    own.map(({ tokens, segments }) => characters.decode(tokens.subarray(0, segments[0]!.start))).sort()
  expect(prompts(of(true))).toEqual(prompts(of(false)))
  expect(asked.some(([, turns]) => turns > 0)).toBe(true)
  const losses = reports.map(({ metrics }) => metrics["loss/cross-entropy"]!)
  expect(losses.at(-1)).toBeLessThan(losses[0]!)
})

it("an expert that throws is an error of the environment", async () => {
  const environment = openReadableDoors() as Environment
  const expert: Environment["expert"] = () => ({
    complete: () => {
      throw new Error("lost")
    },
  })
  const broken = train({ ...tableSetup({ environment: { ...environment, expert } }), ...dagger } as never)
  await expect(broken).rejects.toMatchObject({ code: "ENVIRONMENT_FAILED", message: expect.stringContaining("lost") })
})

it("states without a label are left out", async () => {
  const environment = openReadableDoors() as Environment
  const silent: Environment["expert"] = () => ({ complete: () => undefined })
  const reports = await train({
    ...tableSetup({ environment: { ...environment, expert: silent } }),
    ...dagger,
  } as never)
  expect(reports.every(({ metrics }) => metrics["policy/off-policy-fraction"] === 0)).toBe(true)
})
