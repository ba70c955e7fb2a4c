import { agents, aroundAgent, customAgent } from "../../agents/agents.ts"
import { loraFields, nativePolicyFields } from "../../engine/native/options.ts"
import { remoteFields } from "../../engine/remote/options.ts"
import { customEnvironment, environmentFields } from "../../environment/registry.ts"
import { aroundEnvironment } from "../../environment/wrappers.ts"
import {
  boolean,
  choice,
  field,
  group,
  integer,
  optionalChoice,
  optionalGroup,
  required,
  string,
} from "../../options/field.ts"
import { without } from "../../options/fixed.ts"
import { fieldsOf } from "../../options/named.ts"
import { isObject } from "../../options/read.ts"
import { initializeFields } from "../../sft/initialize-options.ts"
import { sftFields } from "../../sft/options.ts"
import { chatFields } from "../../tokenizer/chat-options.ts"
import { trainFields } from "../../training/options.ts"
import { recordingFields } from "../../view/record/options.ts"
import { mlflowFields } from "../../view/sinks/mlflow.ts"

/** What opens a policy, but for its adapter. Whether it is trained follows from the command, whether there is a reference or a critic from training. */
export const policyFields = without(nativePolicyFields, "training", "reference", "critic", "lora")

/** What the config.json of a run says besides, of itself: such a file is a configuration, too. */
export const runConfigFields = {
  gigpo: string(undefined, "The version that wrote the file; not read."),
  frozen: field<object | undefined, string>(
    undefined,
    "The digests of the weights that the run depends on; not read.",
    (value) => (isObject(value) ? undefined : "must be a group of keys"),
  ),
  resolved: field<object | undefined, string>(
    undefined,
    "Options of a run that was begun from code and whose configuration does not state them; not read.",
    (value) => (isObject(value) ? undefined : "must be a group of keys"),
  ),
  settled: field<object | undefined, string>(
    undefined,
    "What a run that was begun from code chose where its options left it open; not read.",
    (value) => (isObject(value) ? undefined : "must be a group of keys"),
  ),
  promptDate: string(undefined, "The date that the run's prompts show, where chat.now does not set it."),
}

/** Every key of a configuration file. The seed stands once, at the top. */
export const configFields = {
  model: required(
    string(
      undefined,
      "Hugging Face model folder (config.json, safetensors, tokenizer), or a name on the Hub: owner/name.",
    ),
  ),
  teacher: string(
    undefined,
    "gigpo train: model folder of a teacher with the same tokenizer, which is asked how likely it finds what the model says " +
      "(training.loss.name: distillation).",
    { defaultText: "no teacher" },
  ),
  environment: {
    ...choice(undefined, environmentFields, "Which environment; its own options stand beside the name.", {
      own: customEnvironment,
      common: aroundEnvironment,
    }),
    asGiven: true as const,
  },
  agent: optionalChoice(
    choice("process", fieldsOf(agents), "Who plays the environment's tasks.", {
      own: customAgent,
      common: aroundAgent,
    }),
    "the model, by the environment's own loop",
  ),
  run: string(undefined, "Folder of the run: metrics, checkpoints and the trained model.", {
    defaultText: "runs/ and the environment's name",
  }),
  seed: integer(0, "The root of every random number.", { min: 0 }),
  chat: optionalGroup(
    chatFields,
    "What the model's chat template is given beside the messages, in every command.",
    "what the template does without",
  ),
  ...policyFields,
  engine: optionalGroup(
    remoteFields,
    "A server of the Tinker API that samples and trains in the place of this machine; its key is TINKER_API_KEY of the environment, and " +
      "model is the folder of the tokenizer and config.json.",
    "this machine",
  ),
  lora: optionalGroup(without(loraFields, "seed"), nativePolicyFields.lora.help, nativePolicyFields.lora.defaultText),
  training: group(without(trainFields, "seed"), "gigpo train: reinforcement learning."),
  tensorboard: boolean(
    false,
    "gigpo train: write TensorBoard's event files into the run's folder, under tensorboard/.",
  ),
  mlflow: optionalGroup(
    mlflowFields,
    "gigpo train: send settings and metrics to an MLflow server, which may ask for MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME " +
      "and MLFLOW_TRACKING_PASSWORD.",
    "nothing is sent",
  ),
  episodes: group(recordingFields, "What of the episodes of training is recorded, in the run's folder."),
  sft: group(
    without(sftFields, "seed"),
    "gigpo sft: a start from the moves of the environment's expert, or from transcripts.",
  ),
  initialize: group(
    without(initializeFields, "seed"),
    "gigpo init: the shape of a small Qwen3-like model (no biases, norms on queries and keys, tied embeddings).",
  ),
}
