import { describe, expect, it } from "vitest"
import { checkPlayers, type Players } from "../../src/rollout/check-setup.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

const tokenizer = useTokenizer()
const play = async () => ({})

describe("players", () => {
  const environment = doorsEnvironment()
  const tasks = takeDoors(1)

  it("are accepted if they can play", () => {
    class Hooks {
      more = 1
      keep() {
        return true
      }
    }
    const sound: Players<DoorsTask>[] = [
      { environment },
      { agentLoop: play, tasks },
      { agentLoop: play, tasks: { next: () => tasks[0] } },
      { agentLoop: play, environment, hooks: { name: "mine", keep: () => true } as object },
      { environment, hooks: new Hooks() },
      { environment, agentLoop: undefined, hooks: undefined, tasks: undefined },
    ]
    for (const players of sound) expect(() => checkPlayers(players)).not.toThrow()
  })

  it.each<[object, RegExp]>([
    [{}, /^environment and agentLoop are missing; give one of them\.$/],
    [{ agentLoop: play }, /^tasks are missing; give tasks, or an environment/],
    [{ agentLoop: {}, tasks }, /^agentLoop is {}; it must be a function/],
    [{ agentLoop: null, environment }, /^agentLoop is null/],
    [{ environment: 3 }, /^environment is 3; it must be an object with start, prompt, parse, tasks\.$/],
    [{ environment: { ...environment, parse: undefined } }, /^environment.parse must be a function, not undefined\.$/],
    [{ environment: { ...environment, tasks: [] } }, /^environment.tasks must be a function/],
    [{ environment, hooks: () => {} }, /^hooks is \[Function: hooks\]; it must be an object/],
    [{ environment, hooks: null }, /^hooks is null/],
    [{ environment, hooks: { kep: () => true } }, /^In hooks "kep" is not known \(did you mean "keep"\?\)\.$/],
    [{ environment, hooks: { score: 1 } }, /^hooks.score must be a function\.$/],
    [{ agentLoop: play, tasks, hooks: { start: () => {} } }, /^hooks.start applies to the loop of an environment/],
    [{ environment, tasks: {} }, /^tasks must be a list, or a source of tasks: an object with next\(\)\.$/],
    [{ environment, tasks: null }, /^tasks must be a list/],
  ])("that cannot are rejected: %o", (players, message) => {
    const error = expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })
    expect(() => checkPlayers(players)).toThrow(error)
  })
})

it.each<[object, RegExp]>([
  [{ policy: null }, /^policy is null; it must be an object with sample\.$/],
  [{ policy: {} }, /^policy.sample must be a function, not undefined\.$/],
  [{ policy: { sample: () => {} } }, /^policy.vocabularySize is undefined/],
  [{ tokenizer: undefined }, /^tokenizer is undefined; it must be an object with encodeChat, decode\.$/],
  [{ tokenizer: { encodeChat: () => {}, eosTokens: [0] } }, /^tokenizer.decode must be a function/],
  [{ tokenizer: { encodeChat: () => {}, decode: () => "" } }, /^tokenizer.eosTokens must be the list/],
  [{ maxPositions: undefined }, /^maxPositions is undefined/],
  [{ maxCompletionTokens: undefined }, /^maxCompletionTokens is undefined/],
  [{ temperature: undefined }, /^temperature is undefined/],
  [{ tasks: undefined }, /^A rollout needs tasks/],
  [{ agentLoop: 1 }, /^agentLoop is 1/],
  [
    { maxCompletionTokens: 200, maxPositions: 200 },
    /^maxCompletionTokens is 200, but the model has 200 positions \(maxPositions\).*Lower maxCompletionTokens/,
  ],
  [{ maxCompletionTokens: 512, maxPositions: 8 }, /^maxCompletionTokens is 512, but the model has 8 positions/],
])("a rollout of %o is rejected before anything is played", async (wrong, message) => {
  let started = 0
  const sound = doorsEnvironment()
  const environment: typeof sound = {
    ...sound,
    start(...args) {
      started++
      return sound.start(...args)
    },
  }
  await expect(rollout({ ...rolloutSetup(tokenizer.get(), { environment }), ...wrong })).rejects.toMatchObject({
    code: "BAD_ARGUMENT",
    message: expect.stringMatching(message),
  })
  expect(started).toBe(0)
})
