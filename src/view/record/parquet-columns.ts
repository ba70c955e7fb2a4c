import type { SchemaElement } from "hyparquet"
import { stringify } from "../../json/text.ts"
import type { RecordedEpisode, RecordedGroup, RecordedStep } from "../data/recorded.ts"

// Columns of the Parquet table of recorded steps, one row per step. Names are those of the steps of a `RecordedEpisode`; absent values are null.

/** Step with its episode and group. */
export interface Row {
  readonly about: RecordedGroup
  readonly episode: RecordedEpisode
  /** From 0. */
  readonly index: number
  readonly step: RecordedStep
}

export interface ColumnOf {
  readonly name: string
  readonly schema: readonly SchemaElement[]
  readonly value: (row: Row) => unknown
}

type Primitive = Pick<SchemaElement, "type" | "converted_type" | "logical_type">
const text: Primitive = { type: "BYTE_ARRAY", converted_type: "UTF8" }
const json: Primitive = { type: "BYTE_ARRAY", converted_type: "JSON" }
/** Column of existing JSON texts; for `json` the library writes the JSON. */
const written: Primitive = { type: "BYTE_ARRAY", logical_type: { type: "JSON" } }
const whole: Primitive = { type: "INT32" }
const double: Primitive = { type: "DOUBLE" }
const float: Primitive = { type: "FLOAT" }
const truth: Primitive = { type: "BOOLEAN" }

/** Column with a value for every step. */
function always(name: string, of: Primitive, value: ColumnOf["value"]): ColumnOf {
  return { name, schema: [{ name, ...of, repetition_type: "REQUIRED" }], value }
}

function perhaps(name: string, of: Primitive, value: ColumnOf["value"]): ColumnOf {
  return { name, schema: [{ name, ...of, repetition_type: "OPTIONAL" }], value }
}

/** Column with a list of values, one per token of the completion. */
function perToken(name: string, of: Primitive, value: (step: RecordedStep) => unknown): ColumnOf {
  const schema: SchemaElement[] = [
    { name, repetition_type: "OPTIONAL", converted_type: "LIST", num_children: 1 },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
    { name: "element", ...of, repetition_type: "REQUIRED" },
  ]
  return { name, schema, value: ({ step }) => value(step) }
}

const named = (name: string | number | undefined) => (name === undefined ? undefined : String(name))

export const parquetColumns: readonly ColumnOf[] = [
  always("iteration", whole, ({ about }) => about.iteration),
  always("group", whole, ({ about }) => about.group),
  perhaps("task", written, ({ about: { task } }) => (task === null ? null : Buffer.from(stringify(task)))),
  always("member", whole, ({ episode }) => episode.member),
  always("outcome", text, ({ episode }) => episode.outcome),
  always("return", double, ({ episode }) => episode.return),
  perhaps("success", double, ({ episode }) => episode.metrics.success),
  always("step", whole, ({ index }) => index),
  always("observation", text, ({ step }) => step.observation),
  always("anchor", text, ({ step }) => step.anchor),
  perhaps("images", json, ({ step }) => step.images),
  always("prompt", text, ({ step }) => step.prompt),
  always("promptTokens", whole, ({ step }) => step.promptTokens),
  perToken("completion", text, ({ completion }) => completion),
  perToken("logProbs", float, ({ logProbs }) => logProbs),
  perToken("entropies", float, ({ entropies }) => entropies),
  perToken("trainerLogProbs", float, ({ trainerLogProbs }) => trainerLogProbs),
  perToken("forced", whole, ({ forced }) => forced),
  perhaps("advantage", double, ({ step: { advantage } }) => (typeof advantage === "number" ? advantage : undefined)),
  perToken("tokenAdvantages", float, ({ advantage }) => (typeof advantage === "number" ? undefined : advantage)),
  always("skipped", truth, ({ step }) => step.skipped === true),
  always("action", text, ({ step }) => step.action),
  always("valid", truth, ({ step }) => step.valid),
  always("reward", double, ({ step }) => step.reward),
  always("finishReason", text, ({ step }) => step.finishReason),
  always("stepGroup", whole, ({ step }) => step.stepGroup),
  perhaps("discountedReturn", double, ({ step }) => step.discountedReturn),
  perhaps("episodeAdvantage", double, ({ step }) => step.episodeAdvantage),
  perhaps("stepAdvantage", double, ({ step }) => step.stepAdvantage),
  perhaps("metrics", json, ({ step }) => step.metrics),
  perhaps("score", double, ({ step }) => step.score),
  perhaps("candidates", json, ({ step }) => step.candidates),
  perhaps("conversation", text, ({ step }) => named(step.conversation)),
  perhaps("agent", text, ({ step }) => named(step.agent)),
]
