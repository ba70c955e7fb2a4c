import { GigpoError } from "../../util/errors.ts"
import { Pace } from "../../util/pace.ts"
import { readJsonLines } from "../json-lines.ts"
import { readParquetRows } from "./parquet.ts"

/** A question with everything that counts as its right answer. Plain data. */
export interface SearchTask {
  readonly id: string
  readonly question: string
  readonly answers: readonly string[]
  /** The data set it comes from, where that is known (`nq`, `hotpotqa`, …). */
  readonly source?: string
  /** Of questions about an embedded world: which one it is, the entity asked about, and the facts that lead to the answer. */
  readonly world?: number
  readonly subject?: string
  readonly path?: readonly string[]
}

/**
 * Reads a question set: JSON Lines, or Parquet where the name ends in `.parquet`; rows as FlashRAG (`golden_answers`), Search-R1
 * (`reward_model.ground_truth.target`) and verl-agent (`env_kwargs`) lay them out.
 *
 * @throws BAD_DATA where the file cannot be read, where it is empty, or with the line or row where a question is wrong
 */
export async function readQuestions(path: string, signal?: AbortSignal): Promise<SearchTask[]> {
  signal?.throwIfAborted()
  const questions: SearchTask[] = []
  const pace = new Pace(signal)
  if (path.endsWith(".parquet")) {
    for await (const row of readParquetRows(path, columns, signal)) {
      questions.push(readQuestion(row, `${path}, row ${questions.length + 1}`, questions.length))
      if (pace.due()) await pace.rest()
    }
  } else {
    for await (const { number, value } of readJsonLines(path, signal))
      questions.push(readQuestion(value, `${path}, line ${number}`, number - 1))
  }
  if (questions.length === 0) throw new GigpoError("BAD_DATA", `${path} has no questions.`)
  return questions
}

/** The columns that are read; a row's prompt, for one, is not ours. */
const columns = ["id", "question", "golden_answers", "data_source", "reward_model", "env_kwargs"]

function readQuestion(row: unknown, where: string, index: number): SearchTask {
  const question = at(row, "question") ?? at(row, "env_kwargs", "question")
  if (typeof question !== "string" || question.trim() === "")
    throw new GigpoError("BAD_DATA", `${where} must have a text "question" that is not blank.`)
  const answers =
    texts(at(row, "golden_answers")) ??
    texts(at(row, "reward_model", "ground_truth", "target")) ??
    texts(at(row, "env_kwargs", "ground_truth", "target"))
  if (!answers) {
    throw new GigpoError(
      "BAD_DATA",
      `${where} must have its right answers as a list of texts: "golden_answers" or "reward_model.ground_truth.target".`,
    )
  }
  const source = at(row, "data_source") ?? at(row, "env_kwargs", "data_source")
  return {
    id: String(at(row, "id") ?? index),
    question: question.trim(),
    answers,
    ...(typeof source === "string" && { source }),
  }
}

function at(value: unknown, ...keys: readonly string[]): unknown {
  let found = value
  for (const key of keys)
    found = typeof found === "object" && found !== null ? (found as Record<string, unknown>)[key] : undefined
  return found ?? undefined
}

/** A text alone stands for a list of one. */
function texts(value: unknown): string[] | undefined {
  const list = typeof value === "string" ? [value] : value
  return Array.isArray(list) && list.length > 0 && list.every((item) => typeof item === "string") ? list : undefined
}
