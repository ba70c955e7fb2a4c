import { integer, list, oneOf, string } from "../../options/field.ts"
import type { OptionsOf, Resolved } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { agentFields, historyField, thinkingField } from "../agent.ts"
import { readOptions } from "../options.ts"
import { sqlLimitFields } from "./limits.ts"
import type { SqlTask } from "./task.ts"
import { type QuestionKind, questionKinds } from "./world/questions.ts"

/** Of the options that environments share, `history` is 4 and `thinking` is "optional" by default. */
export const sqlFields = {
  ...agentFields<SqlTask>(),
  history: historyField(4),
  thinking: thinkingField("optional"),
  questions: string(
    undefined,
    "File of training questions, a list as `.json` or a line each as `.jsonl`, in the layout of Spider (`db_id`, `question`, `query`) or BIRD (`SQL`, `evidence`).",
    { defaultText: "the questions are about embedded shops" },
  ),
  testQuestions: string(undefined, "File of test questions.", { defaultText: "a tenth of `questions`" }),
  databases: string(
    undefined,
    "Folder of the databases that questions name: `<db_id>/<db_id>.sqlite`, or `<db_id>.sqlite`.",
  ),
  kinds: list(
    questionKinds,
    oneOf<QuestionKind, QuestionKind, string>("price", questionKinds, ""),
    `Kinds of questions about the embedded shops: ${questionKinds.join(", ")}.`,
  ),
  maxSteps: integer(4, "Steps after which an episode is cut off; 1 to 1000. With 1 a model can only answer.", {
    min: 1,
    max: 1000,
  }),
  shownRows: integer(10, "Rows of a result that are shown; 1 to 1000.", { min: 1, max: 1000 }),
  ...sqlLimitFields,
}

/** Options of `sql`. */
export type SqlOptions = OptionsOf<typeof sqlFields>
export type SqlSettings = Resolved<typeof sqlFields>

/** Fills in the defaults. Throws `BAD_CONFIG` where options are unknown, wrong or have nothing to do. */
export function resolveOptions(options: SqlOptions): SqlSettings {
  const resolved = readOptions("sql", options, sqlFields)
  const { questions, testQuestions, databases } = resolved
  if (resolved.kinds.length === 0) fail("kinds is empty; name at least one, or leave it out")
  if ((questions === undefined) !== (databases === undefined))
    fail("questions and databases belong together: a file, and the folder of the databases that it asks about")
  if (testQuestions !== undefined && questions === undefined)
    fail("testQuestions needs questions to train on; give both files")
  if (questions !== undefined && options.kinds !== undefined)
    fail("kinds is for the embedded shops; leave it out where questions are given")
  return resolved
}

function fail(what: string): never {
  throw new GigpoError("BAD_CONFIG", `sql: ${what}.`)
}
