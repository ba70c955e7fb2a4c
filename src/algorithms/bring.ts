import type { Brought } from "../options/about.ts"

/** Input that some algorithms need next to their settings, with an example for one of them. */
export interface Bring {
  /** Title of the section in docs/algorithms.md. */
  readonly title: string
  readonly text: string
  /** Files that the user writes, by name. */
  readonly files?: Readonly<Record<string, string>>
  /** Commands that make the input. */
  readonly commands: readonly string[]
  /** Command that trains with the input, without the settings of an algorithm. */
  readonly use: string
  /** Settings of the algorithm of the example. */
  readonly settings: readonly string[]
}

/** Inputs that settings cannot replace, by the name in `About.brings`. A test runs each with every algorithm that needs it. */
export const bring: Readonly<Record<Brought, Bring>> = {
  teacher: {
    title: "A teacher",
    text:
      "A model folder with the same tokenizer, usually of a larger or a fine-tuned model: the key `teacher`. Here it is the same small model " +
      "after SFT on the environment's expert.",
    commands: ["npx gigpo init number-line demo", "npx gigpo sft demo/config.yaml --out teacher"],
    use: "npx gigpo train demo/config.yaml --set teacher=teacher",
    settings: ["training.loss.name=distillation"],
  },
  judge: {
    title: "A judge",
    text:
      "A server with OpenAI's chat completions and a model that follows instructions: `vllm serve Qwen/Qwen3-8B --served-model-name judge`. The " +
      "options `url` and `model` of the hook name another one.",
    commands: ["npx gigpo init number-line demo"],
    use: "npx gigpo train demo/config.yaml",
    settings: ["training.rolloutHooks.name=judge"],
  },
  pairs: {
    title: "Preference pairs",
    text: "A file of JSON Lines. A prompt is a text or a list of messages.",
    files: {
      "pairs.jsonl":
        '{"prompt": "Target: 5. Current: 3.", "chosen": "<action>+</action>", "rejected": "<action>-</action>"}\n' +
        '{"prompt": "Target: 2. Current: 4.", "chosen": "<action>-</action>", "rejected": "<action>+</action>"}\n',
    },
    commands: ["npx gigpo init number-line demo"],
    use: "npx gigpo sft demo/config.yaml --data pairs.jsonl --out preferred",
    settings: ["sft.loss.name=dpo"],
  },
  episodes: {
    title: "Recorded episodes",
    text: "The folder of an earlier run, which records its episodes. Here constrained decoding makes the completions of an untrained model valid.",
    commands: [
      "npx gigpo init number-line demo",
      "npx gigpo train demo/config.yaml --set training.rollout.constrained=true",
    ],
    use: "npx gigpo sft demo/config.yaml --data demo/run --out improved",
    settings: ["sft.successfulOnly=false", "sft.implicitQ.expectile=0.7"],
  },
  module: {
    title: "A module",
    text: "A file of one's own, here a copy of an example. esbuild makes it JavaScript, which Node.js needs before version 22.18.",
    commands: [
      "npx gigpo init sokoban demo",
      "npx esbuild node_modules/gigpo/examples/extend/curriculum.ts --outfile=demo/reward-weights.js",
    ],
    use: `npx gigpo train demo/config.yaml --set 'training.curriculum={"use":"./reward-weights.js","channels":["success","boxesOnTarget"]}'`,
    settings: [],
  },
}
