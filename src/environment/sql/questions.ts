import { access, readFile } from "node:fs/promises"
import { join } from "node:path"
import { readJson } from "../../json/depth.ts"
import { isObject } from "../../options/read.ts"
import { GigpoError } from "../../util/errors.ts"
import { readJsonLines } from "../json-lines.ts"
import { unreadable } from "../unreadable.ts"
import type { SqlTask } from "./task.ts"

/**
 * Reads questions in the layout of Spider or BIRD. BIRD's `evidence` is appended to the question.
 *
 * @param databases - folder of the databases
 * @throws BAD_DATA if a file cannot be read or is empty, a question is invalid, or a database is missing
 */
export async function readQuestions(path: string, databases: string): Promise<SqlTask[]> {
  const tasks: SqlTask[] = []
  const files = new Map<string, string>()
  for await (const [where, row] of rowsOf(path)) {
    const id = textAt(row, where, "db_id")
    const question = textAt(row, where, "question")
    const gold = textAt(row, where, "query", "SQL")
    const file = files.get(id) ?? (await findDatabase(databases, id, where))
    files.set(id, file)
    const evidence = row.evidence
    tasks.push({
      id: where,
      database: { file },
      question: typeof evidence === "string" && evidence.trim() !== "" ? `${question} (${evidence.trim()})` : question,
      gold,
      ...(typeof row.difficulty === "string" && { source: row.difficulty }),
    })
  }
  if (tasks.length === 0) throw new GigpoError("BAD_DATA", `${path} has no questions.`)
  return tasks
}

type Row = Readonly<Record<string, unknown>>

async function* rowsOf(path: string): AsyncGenerator<[where: string, row: Row], void, undefined> {
  if (path.endsWith(".jsonl")) {
    for await (const { number, value } of readJsonLines(path)) yield [`${path}, line ${number}`, objectOf(value)]
    return
  }
  let all: unknown
  try {
    all = readJson(await readFile(path, "utf8"))
  } catch (cause) {
    throw unreadable(path, cause)
  }
  if (!Array.isArray(all)) throw new GigpoError("BAD_DATA", `${path} must contain a list of questions.`)
  for (const [index, value] of all.entries()) yield [`${path}, question ${index + 1}`, objectOf(value)]
}

function objectOf(value: unknown): Row {
  return isObject(value) ? value : {}
}

function textAt(row: Row, where: string, ...keys: readonly [string, ...string[]]): string {
  const value = keys.map((key) => row[key]).find((one) => typeof one === "string" && one.trim() !== "")
  if (typeof value === "string") return value.trim()
  throw new GigpoError("BAD_DATA", `${where} must have a string "${keys.join('" or "')}" that is not blank.`)
}

async function findDatabase(folder: string, id: string, where: string): Promise<string> {
  if (!/^[\p{L}\p{N}_][\p{L}\p{N}_ .-]*$/u.test(id))
    throw new GigpoError(
      "BAD_DATA",
      `${where} names the database ${JSON.stringify(id)}, which is not a valid file name.`,
    )
  for (const file of [join(folder, id, `${id}.sqlite`), join(folder, `${id}.sqlite`)])
    if (await access(file).then(() => true, () => false)) return file // biome-ignore format: one line
  throw new GigpoError(
    "BAD_DATA",
    `${where} needs the database ${id}, but ${join(folder, id, `${id}.sqlite`)} does not exist.`,
  )
}
