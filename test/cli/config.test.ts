import { describe, expect, it } from "vitest"
import { policyOptions, trainingOptions } from "../../src/cli/config/config.ts"
import { configFields } from "../../src/cli/config/fields.ts"
import { configuredTraining } from "../../src/cli/config/modules.ts"
import { renderConfig } from "../../src/cli/config/render.ts"
import { loadConfig, loadDocument, resolveConfig } from "../../src/cli/config/resolve.ts"
import { openConfiguredEnvironment } from "../../src/cli/model.ts"
import { starterConfig, starterNames } from "../../src/cli/starter.ts"
import { nativePolicyFields } from "../../src/engine/native/options.ts"
import { walk } from "../../src/options/keys.ts"
import { formatRunConfig } from "../../src/runs/config.ts"
import { needsOf } from "../../src/training/make.ts"
import { GigpoError } from "../../src/util/errors.ts"

const least = "model: models/small\nenvironment:\n  name: sokoban\n"

/** The message of the BAD_CONFIG that this configuration is rejected with. */
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
  it("has defaults for all missing options", () => {
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
      rollout: { maxCompletionTokens: 512 },
    })
    expect(config.sft).toMatchObject({ tasks: 1000, optimizer: { schedule: "cosine" } })
    expect(config.sft.optimizer.learningRate).toBeUndefined() // by the size of the model
    expect(policyOptions(config)).toEqual({
      device: "auto",
      recompute: "auto",
      optimizerPrecision: "float32",
      sharePrefixes: true,
      sampleWithCublas: false,
      trainVision: false,
    })
  })

  it("keeps its values, including options of the environment", () => {
    const text = `${least}  boxes: 2\n  thinking: off\nthreads: 3\ntraining:\n  loss: { clipDual: .inf }\n  estimator: { similarity: 0.9 }\n`
    const config = resolveConfig(text)
    expect(config.environment).toEqual({ name: "sokoban", boxes: 2, thinking: "off" })
    expect(config.training.loss).toMatchObject({ clipDual: Number.POSITIVE_INFINITY, clipLow: 0.2 })
    expect(config.training.estimator).toMatchObject({ similarity: 0.9 })
    expect(policyOptions(config)).toMatchObject({ threads: 3 })
  })

  it("passes on every option of a policy", () => {
    const { training: _, ...known } = nativePolicyFields
    const shown = Object.keys(configFields).filter((key) => Object.hasOwn(known, key))
    const config = resolveConfig(`${least}maxTrainTokens: 4096\nlora: { rank: 2 }\nseed: 3\n`)
    const all = Object.fromEntries(shown.map((key) => [key, "given"]))
    expect(policyOptions(config)).toMatchObject({ maxTrainTokens: 4096, lora: { rank: 2, seed: 3 } })
    expect(Object.keys(policyOptions({ ...config, ...all })).sort()).toEqual(shown.sort())
  })

  it("opens a reference policy for a KL weight or a custom part that needs it", async () => {
    const options = async (text: string) => {
      const config = resolveConfig(text)
      return trainingOptions(config, needsOf(await configuredTraining(config)))
    }
    expect(await options(least)).toMatchObject({ reference: false })
    expect(await options(`${least}training: { loss: { klWeight: { from: 0, to: 1 } } }`)).toMatchObject({
      reference: true,
    })
    const own = { name: "mine", needs: ["reference"], estimate: () => ({ advantages: new Float64Array(0) }) } as const
    expect(trainingOptions(resolveConfig(least), needsOf({ estimator: own }))).toMatchObject({ reference: true })
  })

  it("can be overridden by settings of any type, even in missing groups", () => {
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

  it("can be JSON, and the configuration stored by a run", () => {
    const config = resolveConfig(`${least}training: { loss: { clipDual: .inf } }`)
    expect(resolveConfig(formatRunConfig(config))).toEqual(config)
    expect(resolveConfig(JSON.stringify({ model: "m", environment: { name: "search" } })).model).toBe("m")
  })

  it("is unchanged by its own description", () => {
    const config = resolveConfig(`${least}  size: [7, 7]\nthreads: 2\ntraining: { loss: { clipDual: .inf } }`)
    expect(resolveConfig(renderConfig(config))).toEqual(config)
  })

  it("can select an agent, and otherwise lists the possible players", () => {
    expect(resolveConfig(least)).not.toHaveProperty("agent")
    const shown = renderConfig(resolveConfig(least))
    expect(shown).toMatch(/^# agent:\n.*\n {2}# name: process$/m)
    expect(resolveConfig(shown)).toEqual(resolveConfig(least))
    const config = resolveConfig(`${least}agent: { command: [node, agent.mjs], normalize: true }`)
    const agent = {
      name: "process",
      command: ["node", "agent.mjs"],
      environment: "clean",
      control: "none",
      grace: 5,
      normalize: true,
    }
    expect(config.agent).toEqual(agent)
    expect(resolveConfig(renderConfig(config))).toEqual(config)
    expect(refusal(`${least}agent: { normalize: true }`)).toMatch(/line 4: agent\.command is missing/)
    expect(refusal(`${least}agent: proces`)).toMatch(/Did you mean process\?/)
  })

  it.each(starterNames())("examples/%s.yaml, of gigpo init, is valid", async (name) => {
    const starter = starterConfig(name, "some where")
    const config = await loadDocument(starter, "some where")
    expect(config).toMatchObject({ model: "some where/model", run: "some where/run" })
    expect(JSON.stringify(config.environment)).toContain(name === "gateway" ? "examples/gateway/line.mjs" : name)
    await openConfiguredEnvironment(config)
    expect(String(starter.document)).toMatch(/^# yaml-language-server: \$schema=.*\n# .*gigpo config/)
  })

  it.each(starterNames({ vision: true }))("examples/%s-vision.yaml, of gigpo init --vision, is valid", async (name) => {
    const config = await loadDocument(starterConfig(name, "some where", { vision: true }), "some where")
    expect(config).toMatchObject({ environment: { name, observation: "image" }, trainVision: true })
    expect(config.initialModel.vision).toBeDefined()
    await openConfiguredEnvironment(config)
  })

  it("of gigpo init is rejected for other environments", () => {
    expect(() => starterConfig("webshop", "m", { vision: true })).toThrow(
      /There is no starter configuration for webshop with images\. Choose one of: .*sokoban,/,
    )
    expect(() => starterConfig("nowhere", "m")).toThrow(
      /There is no starter configuration for nowhere.*: alfworld, gateway, number-line, search, sokoban, sql, webshop/,
    )
  })
})

describe("an invalid configuration", () => {
  it.each([
    [
      "training: { itterations: 3 }",
      "my.yaml, line 4: training.itterations is not an option; did you mean training.iterations?",
    ],
    [
      "training:\n  optimizer:\n    lerningRate: 3",
      "my.yaml, line 6: training.optimizer.lerningRate is not an option; did you mean training.optimizer.learningRate?",
    ],
    ["iterations: 3", "my.yaml, line 4: iterations is not an option; did you mean training.iterations?"],
    ["training: { learningrate: 3 }", "did you mean training.optimizer.learningRate?"],
    [
      "training: { estimator: { gigpo: { omega: 2 } } }",
      "training.estimator.gigpo is not an option; did you mean training.estimator.name: gigpo and training.estimator.omega?",
    ],
    ["training: { gigpo: { omega: 2 } }", "training.gigpo is not an option; known: "],
    ["training: { estimator: { stepWeight: 2 } }", "did you mean training.estimator.omega?"],
    [
      "training: { rollout: { zzz: 3 } }",
      "training.rollout.zzz is not an option; known: temperature, maxCompletionTokens, constrained, concurrency, maxSteps, environmentTimeout, turnTimeout, episodeTimeout, groupTimeout, maxRetries, minGroupSize, maxResamples, maxBranches, maxRefillRounds.",
    ],
    ["zzz: 3", "zzz is not an option; known: model, teacher, environment, agent, run, seed,"],
    ["__proto__: { x: 1 }", "__proto__ is not an option"],
    ["constructor: 1", "constructor is not an option"],
  ])("with the unknown key %j is rejected with the key that was meant", (text, message) => {
    expect(refusal(`${least}${text}\n`)).toContain(message)
  })

  it.each([
    ["training: { groups: many }", 'my.yaml, line 4: training.groups must be a number, not "many".'],
    ["training: { groups: 1.5 }", "training.groups must be an integer, not 1.5."],
    ["training: { groups: 0 }", "training.groups must be at least 1, not 0."],
    ["training: { groups: '4' }", 'training.groups must be a number, not "4".'],
    ["training: { rollout: { temperature: 0 } }", "training.rollout.temperature must be at least 0.000001, not 0."],
    ["training: { rollout: { temperature: .nan } }", "training.rollout.temperature must be a number, not NaN."],
    [
      "training: { loss: { clipDual: -.inf } }",
      "training.loss.clipDual must be a number above 1, or Infinity (.inf in YAML) to turn it off, not -Infinity.",
    ],
    ["training: { optimizer: { schedule: step } }", 'must be "constant" or "linear" or "cosine", not "step".'],
    [
      "training: { estimator: { similarity: big } }",
      'training.estimator.similarity must be a number, or { threshold, autojunk }, not "big".',
    ],
    ["training: 3", "training must be a group of keys, not 3."],
    ["training:", "training must be a group of keys, not empty."],
    ["? training", "training must be a group of keys, not empty."],
    ["seed: -1", "seed must be at least 0, not -1."],
    [
      "device: tpu",
      'device must be "auto", "cpu", "cuda", "all", or GPUs by their numbers, such as "cuda:1" or "cuda:0,1", not "tpu".',
    ],
    ["device: cuda:0,0", 'device must name each GPU once, not "cuda:0,0".'],
    ["run: ''", 'run must be a non-empty string, not "".'],
    ["training: { loss: { clipDual: 0.5 } }", "training.loss.clipDual must be a number above 1, or Infinity"],
    ["training: { loss: { clipLow: 1.5 } }", "training.loss.clipLow must be a number from 0 to 1, not 1.5."],
    ["training: { estimator: { gamma: 0 } }", "training.estimator.gamma must be above 0 and at most 1, not 0."],
    [
      "training: { estimator: { similarity: 0 } }",
      "similarity must be above 0 and at most 1, or { threshold, autojunk }, not 0.",
    ],
    [
      "training: { estimator: { similarity: { autojunk: true } } }",
      "training.estimator.similarity.threshold is missing.",
    ],
    ["training: { estimator: { name: rlo } }", 'not "rlo". Did you mean rloo?'],
    ["training: { optimizer: { beta1: 1 } }", "training.optimizer.beta1 must be at least 0 and below 1, not 1."],
    ["training: { loss: { clipLow: { from: 0.2 } } }", "training.loss.clipLow.to is missing. Last value."],
    [
      "training: { loss: { clipLow: { from: 0.2, to: 2 } } }",
      "training.loss.clipLow.to must be a number from 0 to 1, not 2.",
    ],
    ["training: { groups: { from: 1, to: 2 } }", "training.groups must be a number, not {"],
  ])("with %j is rejected with what it must be", (text, message) => {
    expect(refusal(`${least}${text}\n`)).toContain(message)
  })

  it("reports all its errors at once, each with its line", () => {
    const text = `${least}training:\n  groups: x\n  loss:\n    klWeigth: 1\n`
    expect(refusal(text, "seed=x", "training.epochs=0").split("\n")).toEqual([
      "my.yaml has 4 mistakes.",
      '--set: seed must be a number, not "x".',
      'my.yaml, line 5: training.groups must be a number, not "x".',
      "--set: training.epochs must be at least 1, not 0.",
      "my.yaml, line 7: training.loss.klWeigth is not an option; did you mean training.loss.klWeight?",
    ])
  })

  it("reports missing keys, with their purpose", () => {
    expect(refusal("")).toMatch(/model is missing. Hugging Face model folder.*\n.*environment is missing/)
    expect(refusal("model: m\nenvironment: {}\n")).toContain("my.yaml, line 2: environment.name is missing.")
  })

  it.each([
    ["- 1\n", /the file must be a group of keys, not \[1\]/],
    ["just text", /the file must be a group of keys/],
    ["model: [1\nrun: 2", /my.yaml, line \d: /],
    ["model: a\nmodel: b\n", /my.yaml, line 2: Map keys must be unique/],
    ["\tmodel: a\n", /my.yaml, line 1: /],
  ])("that is no such YAML (%j) is rejected", (text, message) => {
    expect(refusal(text)).toMatch(message)
  })

  it("that expands far beyond its size is rejected", () => {
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
    "for the setting %j is rejected",
    (set) => {
      expect(refusal(least, set)).toMatch(/^--set/)
    },
  )

  it("file that does not exist is rejected by name", async () => {
    await expect(loadConfig("no/such.yaml")).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining("Could not read no/such.yaml: it does not exist"),
    })
  })
})

describe("the description of all keys", () => {
  const text = renderConfig()

  it("shows every key, with its default or commented out", () => {
    const optional = walk(configFields, undefined).filter(
      ({ entry }) => "defaultText" in entry && !("validate" in entry),
    )
    const isWithin = (groups: typeof optional, path: readonly string[]) =>
      groups.some((group) => group.path.every((key, index) => key === path[index]))
    for (const { path, entry } of walk(configFields, undefined)) {
      const name = path.at(-1)
      if (!("validate" in entry))
        expect(text).toMatch(new RegExp(`^ *${isWithin(optional, path) ? "# " : ""}${name}:$`, "m"))
      else if (entry.default === undefined) expect(text).toContain(`# ${name}:\n`)
      else expect(text).toContain(`${name}: ${shown(entry.default)}\n`)
      const words = entry.help.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(" ", "[\\s#]+")
      expect(text).toMatch(new RegExp(words))
    }
    expect(text).toContain("  # Episodes per task. Default 8.\n  groupSize: 8\n")
    expect(text).toContain("# Number of CPU threads. Default: all cores available to the process.\n# threads:\n")
    expect(text.split("\n").every((line) => line.length <= 112 || line.includes("taskTypes: ["))).toBe(true)
  })

  function shown(value: unknown): unknown {
    if (Array.isArray(value)) return `[${value.join(", ")}]`
    return value === Number.POSITIVE_INFINITY ? ".inf" : value
  }

  it("shows the options of every environment, and for a configuration those of its own", () => {
    expect(text).toContain("  # Options of sokoban: size, boxes,")
    expect(text).toContain(
      "    # Options of ppo: level, gamma, lambda, whiten, whitenOver, std, epsilon, invalidActionPenalty (those not\n    # below are explained above).\n",
    )
    expect(text).toContain("    # lambda: 1\n")
    expect(text).toContain("  # size: [6, 6]\n")
    const own = renderConfig(resolveConfig(`${least}  boxes: 2\n`))
    expect(own).toContain("  # Number of boxes and of targets; 1 to 20. Default 1.\n  boxes: 2\n")
    expect(own).toContain("  # size: [6, 6]\n")
    expect(own).not.toContain("Options of sokoban")
  })

  it("is a configuration with all defaults, except for required values", () => {
    const sets = ["model=m", "environment.name=sokoban"]
    const all = text.replace("environment:\n", "environment: {}\n")
    expect(resolveConfig(all, sets)).toEqual(resolveConfig("", sets))
  })
})

describe("a branch of a configuration", () => {
  const part = (key: string, config?: Parameters<typeof renderConfig>[0]) =>
    renderConfig(config, undefined, { key, all: true })

  it("is printed as in the file, at its place", () => {
    expect(part("seed")).toBe(`# Seed of all random numbers. Default 0.\nseed: 0\n`)
    expect(part("training.rollout.maxCompletionTokens")).toBe(
      "training:\n  rollout:\n    # Maximum length of a completion in tokens. Default 512.\n    maxCompletionTokens: 512\n",
    )
    const set = resolveConfig(least, ["training.rollout.maxCompletionTokens=8"])
    expect(part("training.rollout.maxCompletionTokens", set)).toContain("    maxCompletionTokens: 8\n")
    expect(part("training.estimator.normalization")).toMatch(/^training:\n {2}estimator:\n {4}# .*normalization: /s)
  })

  it("is printed for every key as in the full output", () => {
    const all = renderConfig()
    for (const key of ["training", "training.estimator", "training.loss", "lora", "environment", "sft", "engine"])
      for (const line of part(key).split("\n")) expect(all).toContain(line)
    expect(part("training.estimator").split("\n").length).toBeLessThan(all.split("\n").length / 2)
  })

  it("that is unknown is rejected with a suggestion", () => {
    expect(() => part("training.estimatr")).toThrow(
      /training\.estimatr is not an option; did you mean training\.estimator\?/,
    )
    expect(() => part("seed.more")).toThrow(/seed\.more is not an option; known: none/)
  })
})
