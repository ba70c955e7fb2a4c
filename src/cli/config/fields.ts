import { agents, aroundAgent, customAgent } from "../../agents/agents.ts"
import { customEngine } from "../../engine/custom-engine.ts"
import { loraFields, nativePolicyFields } from "../../engine/native/options.ts"
import { remoteFields } from "../../engine/remote/options.ts"
import { customEnvironment, environmentFields } from "../../environment/registry.ts"
import { aroundEnvironment } from "../../environment/wrappers.ts"
import { choice, field, group, integer, optionalChoice, optionalGroup, required, string } from "../../options/field.ts"
import { without } from "../../options/fixed.ts"
import { fieldsOf } from "../../options/named.ts"
import { isObject } from "../../options/read.ts"
import { initializeFields } from "../../sft/initialize-options.ts"
import { sftFields } from "../../sft/options.ts"
import { chatFields } from "../../tokenizer/chat-options.ts"
import { customObserver } from "../../training/custom-observer.ts"
import { trainFields } from "../../training/options.ts"
import { recordingFields } from "../../view/record/options.ts"
import { sinkFields } from "../../view/sinks/sinks.ts"

/**
 * Options that open a policy, except the adapter. The command and `training` decide whether there is training, a
 * reference policy and a critic.
 */
export const policyFields = without(nativePolicyFields, "training", "reference", "critic", "lora")

const stored = (help: string) => ({
  ...field<object | undefined, string>(undefined, `${help}; not read.`, (value) =>
    isObject(value) ? undefined : "must be a group of keys",
  ),
  hidden: true as const,
})

/** Additional keys of the config.json of a run. Such a file is a valid configuration. */
export const runConfigFields = {
  gigpo: { ...string(undefined, "Version of gigpo that wrote the file; not read."), hidden: true as const },
  frozen: stored("Digests of the weights that the run depends on"),
  resolved: stored("Options of a run started from code that its configuration does not contain"),
  settled: stored("Defaults that a run started from code resolved"),
  promptDate: {
    ...string(undefined, "Date in the prompts of the run, if chat.now is not set."),
    hidden: true as const,
  },
}

/** Every key of a configuration file. The seed exists only at the top level. */
export const configFields = {
  model: required(
    string(
      undefined,
      "Hugging Face model folder (config.json, safetensors, tokenizer), or a name on the Hub: owner/name.",
    ),
  ),
  teacher: string(
    undefined,
    "gigpo train: model folder of a teacher with the same tokenizer, whose log-probabilities are used for distillation " +
      "(training.loss.name: distillation). A teacher with additional text in its prompt: training.privileged.",
    { defaultText: "no teacher" },
  ),
  environment: {
    ...choice(undefined, environmentFields, "Environment, with its options next to the name.", {
      own: customEnvironment,
      common: aroundEnvironment,
    }),
    asGiven: true as const,
  },
  agent: optionalChoice(
    choice("process", fieldsOf(agents), "Agent that runs the episodes of the environment.", {
      own: customAgent,
      common: aroundAgent,
    }),
    "the model acts in the environment directly",
  ),
  run: string(undefined, "Folder of the run, for metrics, checkpoints and the trained model.", {
    defaultText: "runs/ and the name of the environment",
  }),
  seed: integer(0, "Seed of all random numbers.", { min: 0 }),
  chat: optionalGroup(
    chatFields,
    "Variables of the model's chat template besides the messages, in every command.",
    "none",
  ),
  ...policyFields,
  engine: optionalChoice(
    choice(
      "remote",
      { remote: remoteFields },
      "Engine that samples and trains instead of the native one: a server of the Tinker API, whose key is the environment variable " +
        "TINKER_API_KEY (model is then the folder of tokenizer and config.json), or a module.",
      { own: customEngine },
    ),
    "the native engine",
  ),
  lora: optionalGroup(without(loraFields, "seed"), nativePolicyFields.lora.help, nativePolicyFields.lora.defaultText),
  training: group(without(trainFields, "seed"), "gigpo train: reinforcement learning."),
  ...sinkFields,
  observer: optionalChoice(
    choice(undefined, {}, "gigpo train: module of an observer, which receives reports and episodes of the run.", {
      own: customObserver,
    }),
    "none",
  ),
  recording: group(recordingFields, "Recording of episodes in the run folder."),
  sft: group(
    without(sftFields, "seed"),
    "gigpo sft: supervised fine-tuning on completions of the environment's expert or on a data set.",
  ),
  initialModel: group(
    without(initializeFields, "seed"),
    "gigpo init: size of a small Qwen3-like model (no biases, normalized queries and keys, tied embeddings).",
  ),
}
