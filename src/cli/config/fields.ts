import { loraFields, nativePolicyFields } from "../../engine/native/options.ts"
import { remoteFields } from "../../engine/remote/options.ts"
import { environmentFields, ownEnvironment } from "../../environment/registry.ts"
import { aroundEnvironment } from "../../environment/wrappers.ts"
import {
  choice,
  field,
  flag,
  group,
  optionalChoice,
  optionalGroup,
  required,
  text,
  whole,
} from "../../options/field.ts"
import { without } from "../../options/fixed.ts"
import { fieldsOf } from "../../options/named.ts"
import { isObject } from "../../options/read.ts"
import { agents, aroundAgent, ownAgent } from "../../server/agents.ts"
import { cloneFields, initializeFields, trainFields } from "../../training/options.ts"
import { recordingFields } from "../../view/record/options.ts"
import { mlflowFields } from "../../view/sinks/mlflow.ts"

/** What opens a policy, but for its adapter. Whether it is trained follows from the command, whether there is a reference or a critic from training. */
export const policyFields = without(nativePolicyFields, "training", "reference", "critic", "lora")

/** What the config.json of a run says besides, of itself: such a file is a configuration, too. */
export const runConfigFields = {
  gigpo: text(undefined, "The version that wrote the file; not read."),
  frozen: field<object | undefined, string>(
    undefined,
    "The digests of the weights that the run depends on; not read.",
    (value) => (isObject(value) ? undefined : "must be a group of keys"),
  ),
  settled: field<object | undefined, string>(
    undefined,
    "What a run that was begun from code chose where its options left it open; not read.",
    (value) => (isObject(value) ? undefined : "must be a group of keys"),
  ),
}

/** Every key of a configuration file. The seed stands once, at the top. */
export const configFields = {
  model: required(text(undefined, "Hugging Face model folder: config.json, safetensors, tokenizer.")),
  teacher: text(
    undefined,
    "gigpo train: model folder of a teacher with the same tokenizer, which is asked how likely it finds what the model says " +
      "(training.loss.name: distillation).",
    { otherwise: "no teacher" },
  ),
  environment: {
    ...choice(undefined, environmentFields, "Which environment; its own options stand beside the name.", {
      own: ownEnvironment,
      common: aroundEnvironment,
    }),
    asGiven: true as const,
  },
  agent: optionalChoice(
    choice("process", fieldsOf(agents), "Who plays the environment's tasks.", { own: ownAgent, common: aroundAgent }),
    "the model, by the environment's own loop",
  ),
  run: text(undefined, "Folder of the run: metrics, checkpoints and the trained model.", {
    otherwise: "runs/ and the environment's name",
  }),
  seed: whole(0, "The root of every random number.", { least: 0 }),
  ...policyFields,
  engine: optionalGroup(
    remoteFields,
    "A server of the Tinker API that samples and trains in the place of this machine; its key is TINKER_API_KEY of the environment, and " +
      "model is the folder of the tokenizer and config.json.",
    "this machine",
  ),
  lora: optionalGroup(without(loraFields, "seed"), nativePolicyFields.lora.help, nativePolicyFields.lora.otherwise),
  training: group(without(trainFields, "seed"), "gigpo train: reinforcement learning."),
  tensorboard: flag(false, "gigpo train: write TensorBoard's event files into the run's folder, under tensorboard/."),
  mlflow: optionalGroup(
    mlflowFields,
    "gigpo train: send settings and metrics to an MLflow server, which may ask for MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME " +
      "and MLFLOW_TRACKING_PASSWORD.",
    "nothing is sent",
  ),
  episodes: group(recordingFields, "What of the episodes of training is recorded, in the run's folder."),
  clone: group(
    without(cloneFields, "seed"),
    "gigpo clone: a start from the moves of the environment's expert, or from transcripts.",
  ),
  initialize: group(
    without(initializeFields, "seed"),
    "gigpo init: the shape of a small Qwen3-like model (no biases, norms on queries and keys, tied embeddings).",
  ),
}
