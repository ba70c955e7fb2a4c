import { integer, list, oneOf, string } from "../../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { agentFields, historyField, thinkingField } from "../agent.ts"
import { readOptions } from "../options.ts"
import { sqlLimitFields } from "./limits.ts"
import type { SqlTask } from "./task.ts"
import { type QuestionKind, questionKinds } from "./world/questions.ts"

/** Option fields of `sql`. `history` is 4 and `thinking` is "optional" by default. */
export const sqlFields = {
  ...agentFields<SqlTask>(),
  history: historyField(4),
  thinking: thinkingField("optional"),
  questions: string(
    undefined,
    "File of training questions, `.json` (a list) or `.jsonl`, in the layout of Spider (`db_id`, `question`, `query`) or BIRD (`SQL`, `evidence`).",
    { defaultText: "the questions are about embedded shops" },
  ),
  testQuestions: string(undefined, "File of test questions.", { defaultText: "a tenth of `questions`" }),
  databases: string(
    undefined,
    "Folder of the databases of the questions: `<db_id>/<db_id>.sqlite` or `<db_id>.sqlite`.",
  ),
  kinds: list(
    questionKinds,
    oneOf<QuestionKind, QuestionKind, string>("price", questionKinds, ""),
    `Kinds of questions about the embedded shops: ${questionKinds.join(", ")}.`,
  ),
  maxSteps: integer(4, "Maximum number of steps of an episode; 1 to 1000. With 1 a model can only answer.", {
    min: 1,
    max: 1000,
  }),
  maxRows: integer(10, "Maximum number of rows of a result in an observation; 1 to 1000.", { min: 1, max: 1000 }),
  ...sqlLimitFields,
}

/** Options of `sql`. */
export type SqlOptions = OptionsOf<typeof sqlFields>
export type SqlSettings = ResolvedOf<typeof sqlFields>

/** Options with defaults. Throws `BAD_CONFIG` for options that are unknown, invalid or without effect. */
export function resolveOptions(options: SqlOptions): SqlSettings {
  const resolved = readOptions("sql", options, sqlFields)
  const { questions, testQuestions, databases } = resolved
  if (resolved.kinds.length === 0) fail("kinds is empty; give at least one kind, or omit it")
  if ((questions === undefined) !== (databases === undefined))
    fail("questions and databases must be given together: a file, and the folder of its databases")
  if (testQuestions !== undefined && questions === undefined)
    fail("testQuestions needs questions to train on; give both files")
  if (questions !== undefined && options.kinds !== undefined)
    fail("kinds is for the embedded shops; omit it if questions are given")
  return resolved
}

function fail(what: string): never {
  throw new GigpoError("BAD_CONFIG", `sql: ${what}.`)
}
