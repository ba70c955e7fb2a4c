import { describe, expect, it } from "vitest"
import { policyOptions } from "../../src/cli/config/config.ts"
import { configKeys } from "../../src/cli/config/keys.ts"
import { renderConfig } from "../../src/cli/config/render.ts"
import { loadConfig, resolveConfig, resolveDocument } from "../../src/cli/config/resolve.ts"
import { openConfiguredEnvironment } from "../../src/cli/model.ts"
import { starterConfig, starterNames } from "../../src/cli/starter.ts"
import { GigpoError } from "../../src/errors.ts"
import { formatRunConfig } from "../../src/training/run-config.ts"

const least = "model: models/small\nenvironment:\n  name: sokoban\n"

/** The message of the BAD_CONFIG that this configuration is refused with. */
function refusal(text: string, ...sets: string[]): string {
  try {
    resolveConfig(text, sets, "my.yaml")
  } catch (error) {
    if (GigpoError.is(error) && error.code === "BAD_CONFIG") return error.message
    throw error
  }
  throw new Error("the configuration was taken")
}

describe("a configuration", () => {
  it("gets every default that it leaves out", () => {
    const config = resolveConfig(least)
    expect(config).toMatchObject({
      model: "models/small",
      environment: { name: "sokoban" },
      seed: 0,
      run: "runs/sokoban",
    })
    expect(config.training).toMatchObject({
      iterations: 150,
      groups: 16,
      groupSize: 8,
      rollout: { maxReplyTokens: 512 },
    })
    expect(config.clone).toMatchObject({ tasks: 1000, optimizer: { learningRate: 1e-6 } })
    expect(policyOptions(config)).toEqual({})
  })

  it("keeps what it says, the environment's own options too", () => {
    const text = `${least}  boxes: 2\n  thinking: off\nthreads: 3\ntraining:\n  loss: { clipDual: .inf }\n  estimator: { similarity: 0.9 }\n`
    const config = resolveConfig(text)
    expect(config.environment).toEqual({ name: "sokoban", boxes: 2, thinking: "off" })
    expect(config.training.loss).toMatchObject({ clipDual: Number.POSITIVE_INFINITY, clipLow: 0.2 })
    expect(config.training.estimator).toMatchObject({ similarity: 0.9 })
    expect(policyOptions(config)).toEqual({ threads: 3 })
  })

  it("takes settings over the file's, of any type, also where the file has no such group", () => {
    const sets = [
      "training.iterations=20",
      "environment.size=[8, 8]",
      "training.optimizer.schedule=cosine",
      "run=a=b",
      "seed = 7",
    ]
    const config = resolveConfig(`${least}training: { iterations: 3 }`, sets)
    expect(config.training).toMatchObject({ iterations: 20, optimizer: { schedule: "cosine" } })
    expect(config).toMatchObject({ environment: { size: [8, 8] }, run: "a=b", seed: 7 })
  })

  it("may be JSON, and may be what a run has kept", () => {
    const config = resolveConfig(`${least}training: { loss: { clipDual: .inf } }`)
    expect(resolveConfig(formatRunConfig(config))).toEqual(config)
    expect(resolveConfig(JSON.stringify({ model: "m", environment: { name: "e" } })).model).toBe("m")
  })

  it("comes out of its own description unchanged", () => {
    const config = resolveConfig(`${least}  size: [7, 7]\nthreads: 2\ntraining: { loss: { clipDual: .inf } }`)
    expect(resolveConfig(renderConfig(config))).toEqual(config)
  })

  it.each(starterNames())("examples/%s.yaml, of gigpo init, is one that is taken", async (name) => {
    const starter = starterConfig(name, "some where/model", "r")
    const config = resolveDocument(starter)
    expect(config).toMatchObject({ model: "some where/model", run: "r", environment: { name } })
    await openConfiguredEnvironment(config)
    expect(String(starter.document)).toMatch(/^# .*gigpo config/)
  })

  it("of gigpo init is refused for other environments", () => {
    expect(() => starterConfig("nowhere", "m", "r")).toThrow(
      /nowhere is no environment for a small model.*: alfworld, search, sokoban, webshop/,
    )
  })
})

describe("a wrong configuration", () => {
  it.each([
    ["training: { itterations: 3 }", "my.yaml, line 4: training.itterations: did you mean training.iterations?"],
    [
      "training:\n  optimizer:\n    lerningRate: 3",
      "my.yaml, line 6: training.optimizer.lerningRate: did you mean training.optimizer.learningRate?",
    ],
    ["iterations: 3", "my.yaml, line 4: iterations: did you mean training.iterations?"],
    ["training: { learningrate: 3 }", "did you mean training.optimizer.learningRate?"],
    [
      "training: { rollout: { zzz: 3 } }",
      "training.rollout.zzz is not known; training.rollout may hold temperature, maxReplyTokens, concurrency, maxSteps, environmentTimeout.",
    ],
    ["zzz: 3", "zzz is not known; the file may hold gigpo, model, environment, run, seed,"],
    ["__proto__: { x: 1 }", "__proto__ is not known"],
    ["constructor: 1", "constructor is not known"],
  ])("with the unknown key %j is refused with the key that was meant", (text, message) => {
    expect(refusal(`${least}${text}\n`)).toContain(message)
  })

  it.each([
    ["training: { groups: many }", 'my.yaml, line 4: training.groups must be a number, not "many".'],
    ["training: { groups: 1.5 }", "training.groups must be a whole number, not 1.5."],
    ["training: { groups: 0 }", "training.groups must be at least 1, not 0."],
    ["training: { groups: '4' }", 'training.groups must be a number, not "4".'],
    ["training: { rollout: { temperature: 0 } }", "training.rollout.temperature must be above 0, not 0."],
    ["training: { rollout: { temperature: .nan } }", "training.rollout.temperature must be a number, not NaN."],
    [
      "training: { loss: { clipDual: -.inf } }",
      "training.loss.clipDual must be a number above 0, or .inf to turn it off, not -Infinity.",
    ],
    ["training: { optimizer: { schedule: step } }", 'must be "constant" or "linear" or "cosine", not "step".'],
    [
      "training: { estimator: { similarity: big } }",
      "training.estimator.similarity must be a number from 0 to 1, or {",
    ],
    ["training: 3", "training must be a group of keys, not 3."],
    ["training:", "training must be a group of keys, not empty."],
    ["seed: -1", "seed must be at least 0, not -1."],
    ["device: tpu", 'device must be "auto" or "cpu" or "cuda", not "tpu".'],
    ["run: ''", 'run must not be empty, not ""'],
  ])("with %j is refused with what it must be", (text, message) => {
    expect(refusal(`${least}${text}\n`)).toContain(message)
  })

  it("tells all its mistakes at once, each with its line", () => {
    const text = `${least}training:\n  groups: x\n  loss:\n    klWeigth: 1\n`
    expect(refusal(text, "seed=x", "training.epochs=0").split("\n")).toEqual([
      "my.yaml has 4 mistakes.",
      '--set: seed must be a number, not "x".',
      'my.yaml, line 5: training.groups must be a number, not "x".',
      "--set: training.epochs must be at least 1, not 0.",
      "my.yaml, line 7: training.loss.klWeigth: did you mean training.loss.klWeight?",
    ])
  })

  it("tells what is missing, and what that is for", () => {
    expect(refusal("")).toMatch(/model is missing. Hugging Face model folder.*\n.*environment is missing/)
    expect(refusal("model: m\nenvironment: {}\n")).toContain("my.yaml, line 2: environment.name is missing.")
  })

  it.each([
    ["- 1\n", /the file must be a group of keys, not \[1\]/],
    ["just text", /the file must be a group of keys/],
    ["model: [1\nrun: 2", /my.yaml, line \d: /],
    ["model: a\nmodel: b\n", /my.yaml, line 2: Map keys must be unique/],
    ["\tmodel: a\n", /my.yaml, line 1: /],
  ])("that is no such YAML (%j) is refused", (text, message) => {
    expect(refusal(text)).toMatch(message)
  })

  it("that unfolds to far more than it says is refused", () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) =>
        `a${i}: &a${i} [${Array(10)
          .fill(i ? `*a${i - 1}` : "x")
          .join(", ")}]`,
    )
    expect(refusal(levels.join("\n"))).toMatch(/alias/i)
  })

  it.each(["training.iterations", "=3", ".=3", "training..x=3", "model.x=3", "model=[", "nope=1"])(
    "for the setting %j is refused",
    (set) => {
      expect(refusal(least, set)).toMatch(/^--set/)
    },
  )

  it("file that is not there is refused by name", async () => {
    await expect(loadConfig("no/such.yaml")).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining("Could not read no/such.yaml: it does not exist"),
    })
  })
})

describe("the description of all keys", () => {
  it("shows each key with its default, and those without one commented out", () => {
    const text = renderConfig()
    for (const { path, group, default: fallback } of configKeys.filter((key) => key.path[0] !== "gigpo")) {
      const name = path.at(-1)
      if (group) expect(text).toContain(`${name}:\n`)
      else if (fallback === undefined) expect(text).toContain(`# ${name}:\n`)
      else expect(text).toContain(`${name}: ${fallback}\n`)
    }
    expect(text).toContain("  # Episodes of each task. Default 8.\n  groupSize: 8\n")
    expect(text.split("\n").every((line) => line.length <= 112)).toBe(true)
  })
})
