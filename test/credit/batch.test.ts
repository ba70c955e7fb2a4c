import { describe, expect, it } from "vitest"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import { GigpoError } from "../../src/util/errors.ts"

const record = { observation: { text: "You see a door.", anchor: "s" }, text: "I open it.", action: "open" }

const steps: BatchStep[] = [
  {
    task: "x",
    episode: 0,
    anchor: "s",
    nextAnchor: "t",
    reward: 1,
    length: 3,
    agent: "red",
    conversation: "main",
    record,
  },
  { task: "y", episode: 0, anchor: "s", reward: 2, valid: false, agent: "blue", conversation: "main", record },
  { task: "x", episode: 0, anchor: "t", reward: 0, terminated: true, agent: "blue", conversation: "side", record },
  { task: "x", episode: "0", anchor: "s", reward: -1, truncated: true, agent: "red", conversation: "main", record },
]

describe("toBatch", () => {
  it("converts steps to columns", () => {
    expect(toBatch(steps)).toEqual({
      length: 4,
      task: Int32Array.of(0, 1, 0, 0),
      episode: Int32Array.of(0, 1, 0, 2),
      rewards: Float64Array.of(1, 2, 0, -1),
      valid: Uint8Array.of(1, 0, 1, 1),
      anchors: ["s", "s", "t", "s"],
      anchorGroups: Int32Array.of(0, 1, 2, 0),
      nextAnchors: ["t", undefined, undefined, undefined],
      terminated: Uint8Array.of(0, 0, 1, 0),
      truncated: Uint8Array.of(0, 0, 0, 1),
      lengths: Int32Array.of(3, 1, 1, 1),
      steps: [record, record, record, record],
      conversation: Int32Array.of(0, 1, 2, 3), // a conversation belongs to its episode, an agent to all
      agent: Int32Array.of(0, 1, 1, 0),
      agentNames: ["red", "blue"],
    })
  })

  it("omits padding, and columns without values", () => {
    const padding: BatchStep = { task: "x", episode: 0, reward: NaN, padding: true }
    const bare: BatchStep = { task: "x", episode: 0, anchor: "s", reward: 1 }
    const batch = toBatch([padding, bare, padding, bare])
    expect(batch.length).toBe(2)
    expect(Object.keys(batch)).not.toEqual(expect.arrayContaining(["steps"]))
    expect(batch.conversation ?? batch.agent ?? batch.steps).toBeUndefined()
    expect(toBatch([]).anchorGroups).toHaveLength(0)
  })

  it("groups steps without a conversation or an agent if others have one", () => {
    const batch = toBatch([{ ...steps[0]!, agent: undefined }, steps[1]!, { ...steps[2]!, agent: undefined }])
    expect(batch.agent).toEqual(Int32Array.of(0, 1, 0))
  })

  it("requests anchors only if they are read", () => {
    const { anchor: _, ...without } = steps[1]!
    const batch = toBatch([steps[0]!, without])
    expect(batch.rewards).toEqual(Float64Array.of(1, 2))
    for (const read of [() => batch.anchors, () => batch.anchorGroups])
      expect(read).toThrow(
        expect.objectContaining({
          code: "BAD_ARGUMENT",
          message: expect.stringMatching(/^Step 1 has an anchor of type/),
        }),
      )
  })

  it.each<[object, RegExp]>([
    [{ task: undefined }, /^Step 1 has a task of type undefined/],
    [{ episode: {} }, /^Step 1 has an episode of type object/],
    [{ agent: true }, /^Step 1 has an agent of type boolean/],
    [{ conversation: null }, /^Step 1 has a conversation of type object/],
    [{ nextAnchor: 4 }, /^Step 1 has a nextAnchor of type number/],
    [{ length: 0 }, /^Step 1 has the length 0/],
    [{ length: 1.5 }, /^Step 1 has the length 1\.5/],
    [{ reward: Infinity }, /^Step 1 \(task "y", episode 0\) has the reward Infinity/],
    [{ reward: "1" }, /^Step 1 .* has the reward 1/],
  ])("rejects a step with %j", (wrong, message) => {
    const call = () => toBatch([steps[0]!, { ...steps[1]!, ...wrong } as BatchStep])
    expect(call).toThrow(GigpoError)
    expect(call).toThrow(message)
  })
})
