import { expect, it } from "vitest"
import { settingsOf, trainingOption } from "../../../src/view/data/settings.ts"

it("puts first what differs between runs, and tells what a run does not have", () => {
  const runs = [
    { settings: { seed: 1, "a.b": "x", same: true } },
    { settings: { seed: 1, "a.b": "y", same: true, own: null } },
  ]
  expect(settingsOf(runs)).toEqual([
    { key: "a.b", values: ["x", "y"], differs: true },
    { key: "own", values: [undefined, null], differs: true },
    { key: "seed", values: [1, 1], differs: false },
    { key: "same", values: [true, true], differs: false },
  ])
  expect(settingsOf(runs.slice(0, 1)).every(({ differs }) => !differs)).toBe(true)
})

it("an option of the training is found in runs of the command line and of code, stated or not", () => {
  for (const prefix of ["", "training.", "resolved.", "resolved.training."])
    expect(
      trainingOption({ settings: { [`${prefix}estimator.omega`]: 0.5, "x.estimator.omega": 1 } }, "estimator.omega"),
    ).toBe(0.5)
  expect(trainingOption({ settings: {} }, "estimator.omega")).toBeUndefined()
})
