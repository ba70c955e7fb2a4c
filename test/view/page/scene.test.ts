import { describe, expect, it } from "vitest"
import { readScene } from "../../../src/view/page/draw/scene.ts"
import { recordedGroup } from "../browser/graph-run.ts"

describe("the scene that an observation of a household tells", () => {
  it.each([
    [
      "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a shelf 1, a sofa 12, and an armchair 1.\n\nYour task is to: put a watch in sofa.",
      { around: ["shelf 1", "sofa 12", "armchair 1"] },
    ],
    [
      "You arrive at shelf 1. On the shelf 1, you see a watch 2, and an apple 1.",
      { place: "shelf 1", things: ["watch 2", "apple 1"] },
    ],
    ["You arrive at safe 1. The safe 1 is closed.", { place: "safe 1", isClosed: true }],
    ["You open the safe 1. The safe 1 is open. In it, you see nothing.", { place: "safe 1", things: [] }],
    ["You pick up the watch 1 from the shelf 1.", { place: "shelf 1", carried: ["watch 1"] }],
    ["You put the watch 1 in/on the shelf 1.", { place: "shelf 1", things: ["watch 1"], carried: [] }],
    ["You clean the mug 1 using the sinkbasin 2.", { place: "sinkbasin 2", carried: ["mug 1"] }],
    ["You are carrying: a box 1.", { carried: ["box 1"] }],
    ["You are facing the bed 1. Next to it, you see nothing.", { place: "bed 1" }],
  ])("%s", (observation, scene) => {
    expect(readScene(observation)).toEqual(scene)
  })

  it("is none where anything is odd", () => {
    for (const text of [
      "",
      "Nothing happens.",
      "On the <b>shelf</b> 1, you see a watch 2.",
      "The safe is closed.",
      `On the shelf 1, you see ${"a watch 1, ".repeat(5000)}.`,
    ])
      expect(readScene(text)).toBeUndefined()
  })

  it("is found in nearly all that a household said", () => {
    const texts = recordedGroup("household").episodes.flatMap(({ steps }) => steps.map((step) => step.observation))
    const known = texts.filter((text) => readScene(text) !== undefined)
    expect(known.length / texts.length).toBeGreaterThan(0.8)
  })
})
