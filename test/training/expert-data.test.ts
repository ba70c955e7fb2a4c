import { describe, expect, it, vi } from "vitest"
import type { Sequence } from "../../src/engine/sequence.ts"
import { train } from "../../src/training/train.ts"
import { tableSetup } from "./table-setup.ts"
import { openReadableDoors } from "./tiny.ts"

const chord = { name: "chord", peak: 1, valley: 1 } as const

describe("expertData", () => {
  it("adds the expert's steps to the optimizer steps of each iteration, and the policy learns them", async () => {
    const setup = tableSetup({ iterations: 4, stepsPerUpdate: 256, environment: openReadableDoors() })
    const batches: (readonly Sequence[])[] = []
    const { forwardBackward } = setup.policy
    vi.spyOn(setup.policy, "forwardBackward").mockImplementation((rows, ...rest) => {
      batches.push(rows)
      return forwardBackward.call(setup.policy, rows, ...rest)
    })
    const reports = await train({ ...setup, loss: { ...chord, phi: false }, expertData: { tasks: 5 } } as never)
    const shown = batches.flat().flatMap(({ segments }) => segments.filter(({ offPolicy }) => offPolicy))
    expect(shown.length).toBeGreaterThanOrEqual(4 * 5)
    expect(shown.every(({ advantage }) => advantage === 0)).toBe(true)
    const losses = reports.map(({ metrics }) => metrics["loss/cross-entropy"]!)
    expect(losses.every((loss) => loss > 0)).toBe(true)
    expect(losses.at(-1)).toBeLessThan(losses[0]!)
  })

  it.each([
    [{ loss: chord }, /chord learns from steps of an expert: set expertData\.tasks/],
    [{ expertData: {} }, /expertData has no effect without the loss chord/],
    [{ loss: { ...chord, klWeight: 0.1 }, expertData: {} }, /set loss\.klWeight and loss\.teacherWeight to 0/],
  ])("is rejected where it has no meaning: %o", async (changes, message) => {
    await expect(train({ ...tableSetup(), ...changes } as never)).rejects.toThrow(message)
  })

  it("is rejected for an environment without an expert", async () => {
    const { environment, ...setup } = tableSetup()
    const bare = { ...(environment as object), expert: undefined }
    const refused = train({ ...setup, environment: bare, loss: chord, expertData: {} } as never)
    await expect(refused).rejects.toThrow(/expertData needs the method expert of the environment/)
  })
})
