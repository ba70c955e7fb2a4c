import { recall } from "../agent.ts"
import type { Environment } from "../environment.ts"
import { readSplits, shuffledForever } from "../splits.ts"
import { SqlDatabases } from "./databases.ts"
import { startEpisode } from "./episode.ts"
import { resolveOptions, type SqlOptions } from "./options.ts"
import { promptText } from "./prompt.ts"
import { readQuestions } from "./questions.ts"
import { readSqlReply } from "./reply.ts"
import type { SqlTask } from "./task.ts"
import { shopQuestions } from "./world/questions.ts"

export type { SqlOptions } from "./options.ts"
export type { SqlTask } from "./task.ts"

/** Environment of SQL tasks, with its databases. */
export interface SqlEnvironment extends Environment<SqlTask> {
  /** The databases of its tasks, for agents that ask them by themselves. */
  readonly databases: SqlDatabases
}

/**
 * Questions to be answered in SQL, as Spider and BIRD pose them: a reply looks at the database (`<sql>…</sql>`, whose result is shown) or
 * answers (`<answer>…</answer>`), which ends the episode; 1 where the statement gives the rows of the gold one, else 0. The order of rows
 * counts where the gold statement says one, names of columns do not. A reply that does neither shows nothing and takes a step.
 *
 * Without options it asks about embedded, invented shops. Databases are SQLite's (better-sqlite3, or Node's own), only read, and
 * asked in processes of their own; statements may not draw random numbers, but those that ask for today (`datetime('now')`) give another
 * result tomorrow. Metrics: `success`, `success/<source>`, `queries`, `failedQueries`. Rejects with `BAD_CONFIG`
 * where options are wrong or there is no SQLite, `BAD_DATA` where files are wrong.
 */
export async function sql(options: SqlOptions = {}): Promise<SqlEnvironment> {
  const resolved = resolveOptions(options)
  const { questions, testQuestions, databases: folder, kinds, timeLimit, memoryLimit, processes } = resolved
  const databases = new SqlDatabases({ timeLimit, memoryLimit, processes })
  await databases.check()
  const { speech, remembers } = recall(resolved, 1) // what a query gave is told of the query, not observed anew
  const thought = resolved.thinking === "required" ? "<think>This statement gives it.</think>" : ""
  let tasks: Environment<SqlTask>["tasks"] = (split, random) => shopQuestions(split, kinds, random)
  if (questions !== undefined) {
    const { train, test } = await readSplits<SqlTask>(questions, testQuestions, {
      what: "questions",
      environment: "sql",
      read: (path) => readQuestions(path, folder!),
      keyOf: ({ question }) => question.toLowerCase(),
    })
    tasks = (split, random) => (split === "test" ? test : shuffledForever(train, random))
  }
  return {
    name: "sql",
    taskFiles: { questions, testQuestions },
    ...remembers,
    databases,
    tasks,
    start: async (task, context) => await startEpisode(task, databases, resolved, context),
    prompt: resolved.prompt ?? ((_task, history, now) => [{ role: "user", content: promptText(history, now, speech) }]),
    parse: resolved.parse ?? ((reply) => readSqlReply(reply, resolved.thinking)),
    expert: ({ gold }) => ({ reply: () => `${thought}<answer>${gold}</answer>` }),
  }
}
