import { mkdtemp, rename, rm, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Agent } from "../../src/agents/agent.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { openEnvironment } from "../../src/environment/open-environment.ts"
import { parallelCopies } from "../../src/environment/parallel.ts"
import { Run, type RunMode } from "../../src/runs/run.ts"
import { digestTasks } from "../../src/runs/same-environment.ts"
import { train } from "../../src/training/train.ts"
import { ask, user } from "../endpoint/ask.ts"
import { tableSetup } from "../training/table-setup.ts"
import { all, openDoors, TinyModel } from "../training/tiny.ts"

const tiny = new TinyModel(openDoors())

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-environment-"))
})
afterEach(async () => await rm(folder, { recursive: true }))

const path = (name: string) => join(folder, name)
const lines = (values: readonly unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join("")
const count = Array.from({ length: 40 }, (_, index) => index)
const refused = (words: RegExp) => ({ code: "BAD_CONFIG", message: expect.stringMatching(words) })

async function trained(environment: Environment, directory: string, mode: RunMode = {}) {
  await using run = await Run.open(directory, {}, mode)
  const iterations = mode.resume || mode.fork ? 2 : 1
  const setup = tableSetup({ environment })
  // Completions of the table never have a part for each copy, so that nothing else ends an episode of several.
  const rollout = { ...setup.rollout, maxSteps: 3 }
  return await all(train({ ...setup, iterations, rollout, evaluation: { every: 0 }, run }))
}

describe("a run's environment", () => {
  it("must have the same name when it is resumed, and may be another in a fork", async () => {
    const named = (name: string) => ({ ...openDoors(), name })
    await trained(named("doors"), path("run"))
    await expect(trained(named("windows"), path("run"), { resume: true })).rejects.toMatchObject(
      refused(/environment doors, not in windows/),
    )
    expect(await trained(named("windows"), path("fork"), { fork: path("run") })).toHaveLength(1)
    expect(await trained(named("doors"), path("run"), { resume: true })).toHaveLength(1)
  })

  it.each(["itself", "in parallel"])("must have the same tasks when it is resumed: %s", async (how) => {
    const put = async (values: readonly unknown[]) => await writeFile(path("tasks.jsonl"), lines(values))
    const opened = async () => {
      const { taskFiles } = await openEnvironment("tasks", { tasks: path("tasks.jsonl") })
      const doors = { ...openDoors(), taskFiles }
      return how === "itself" ? doors : parallelCopies(doors, {})
    }
    await put(count)
    await trained(await opened(), path("run"))
    await put(count.map((value) => value + 1))
    await expect(trained(await opened(), path("run"), { resume: true })).rejects.toMatchObject(
      refused(/file of environment\.tasks has changed/),
    )
    expect(await trained(await opened(), path("fork"), { fork: path("run") })).toHaveLength(1)
    await put(count)
    await rename(path("tasks.jsonl"), path("moved.jsonl"))
    const moved = { ...openDoors(), taskFiles: { tasks: path("moved.jsonl") } }
    expect(await trained(moved, path("run"), { resume: true })).toHaveLength(1)
  })

  it("reports held-out tasks from another file, or from none", async () => {
    for (const name of ["one", "two"]) await writeFile(path(name), name)
    const of = (testTasks?: string) => ({ ...openDoors(), taskFiles: { tasks: path("one"), testTasks } })
    await trained(of(path("two")), path("run"))
    for (const other of [path("one"), undefined])
      await expect(trained(of(other), path("run"), { resume: true })).rejects.toMatchObject(
        refused(/file of environment\.testTasks has changed/),
      )
  })
})

it("a run of an agent must have the same tasks when it is resumed", async () => {
  const put = async (values: readonly unknown[]) => await writeFile(path("tasks.jsonl"), lines(values))
  const agent: Agent = async (task, context) => {
    const completion = await ask(context, [user(String(task))], { max_tokens: 2 })
    return { reward: String(completion.content).length % 2 }
  }
  const played = async (iterations: number, mode: RunMode = {}) => {
    const environment = await openEnvironment("tasks", { tasks: path("tasks.jsonl") })
    await using run = await Run.open(path("run"), {}, mode)
    const options = {
      iterations,
      groups: 1,
      groupSize: 2,
      evaluation: { every: 0 },
      rollout: { maxCompletionTokens: 2 },
    }
    return await all(train({ ...(await tiny.open()), environment, agent, ...options, run }))
  }
  await put(count)
  await played(1)
  await put([...count, 40])
  await expect(played(2, { resume: true })).rejects.toMatchObject(refused(/file of environment\.tasks has changed/))
  await put(count)
  expect(await played(2, { resume: true })).toHaveLength(1)
})

describe("files of tasks", () => {
  it("are reported by the environments that read them", async () => {
    const questions = count.map((index) => ({ question: `q${index}`, golden_answers: ["a"] }))
    await writeFile(path("questions.jsonl"), lines(questions))
    await writeFile(path("corpus.jsonl"), lines([{ id: "0", contents: "A\nb" }]))
    const files = { questions: path("questions.jsonl"), corpus: path("corpus.jsonl") }
    expect((await openEnvironment("search", files)).taskFiles).toMatchObject(files)
    expect(await digestTasks((await openEnvironment("search", files)).taskFiles)).toEqual({
      questions: expect.stringMatching(/^[0-9a-f]{64}$/),
      corpus: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    for (const name of ["search", "webshop", "sokoban"] as const)
      expect(await digestTasks((await openEnvironment(name)).taskFiles)).toBeUndefined()
  })

  it("are not read if they are large, or are folders", async () => {
    await writeFile(path("large"), "")
    await truncate(path("large"), 65e6)
    expect(await digestTasks({ corpus: path("large"), data: folder })).toBeUndefined()
  })
})
