import type { SqlAnswer } from "./answer.ts"

/** Database: a `script` of SQL that creates it in memory, or the path of a `file`. */
export type SqlDatabase = { readonly script: string } | { readonly file: string }

export interface ProcessRequest {
  readonly database: SqlDatabase
  readonly sql: string
}

/** Message of the process. The first reports whether there is a driver; each further message answers a request. */
export type ProcessMessage = { readonly ready: string } | { readonly missing: string } | { readonly answer: SqlAnswer }

/** Maximum number of open databases of a process; the least recently used one is closed first. */
const mostOpen = 64
/** Maximum number of rows of a result. */
const mostRows = 10_000
/** Maximum size of all values of a result in bytes, with one byte per character. */
const mostBytes = 2 ** 22
/** Interval of the memory checks in milliseconds. */
const watchEvery = 10

/**
 * Source of a process that executes queries; as a string, it runs the same from src and from dist. Arguments: the URL from which drivers
 * are resolved, and the memory limit in bytes.
 *
 * JavaScript cannot interrupt a statement, neither by a signal nor in a worker thread, so the parent kills the process. SQLite's drivers do
 * not limit memory, so a separate thread watches it. Temporary data of queries stays in memory. The same thread ends a busy process whose
 * parent has ended.
 *
 * Random numbers are rejected, because an episode must be a function of its actions. The current time (CURRENT_TIMESTAMP,
 * datetime('now')) is allowed, although results change with it: SQLite has no other clock, and data sets use it to compute ages.
 */
export const processSource: string = `
"use strict"
const module_ = process.getBuiltinModule("node:module")
const { Worker } = process.getBuiltinModule("node:worker_threads")
const [, base, memory] = process.argv
const require_ = module_.createRequire(base)

new Worker(
  "const { workerData: [parent, most] } = process.getBuiltinModule('node:worker_threads');" +
    "setInterval(() => { if (process.ppid !== parent || process.memoryUsage.rss() > most) process.kill(process.pid, 'SIGKILL') }, ${watchEvery})",
  { eval: true, execArgv: [], workerData: [process.ppid, Number(memory)] },
).unref()

const drivers = {
  "better-sqlite3"() {
    const Database = require_("better-sqlite3")
    new Database(":memory:").close()
    return (file) => {
      const database = new Database(file ?? ":memory:", file === undefined ? {} : { readonly: true, fileMustExist: true })
      return {
        database,
        prepare(sql) {
          const statement = database.prepare(sql)
          if (!statement.reader || !statement.readonly) throw new Error("only reading is allowed here")
          return statement.raw(true).safeIntegers(true)
        },
      }
    }
  },
  "node:sqlite"() {
    const sqlite = process.getBuiltinModule("node:sqlite")
    if (!sqlite?.StatementSync.prototype.setReturnArrays) throw new Error("this Node has no node:sqlite that gives rows as lists")
    return (file) => {
      const database = new sqlite.DatabaseSync(file ?? ":memory:", { readOnly: file !== undefined })
      return {
        database,
        prepare(sql) {
          const statement = database.prepare(sql)
          statement.setReturnArrays(true)
          statement.setReadBigInts(true)
          return statement
        },
      }
    }
  },
}

const missing = []
let open
let driver
for (const [name, load] of Object.entries(drivers)) {
  try {
    open ??= load()
    driver ??= name
  } catch (error) {
    missing.push(name + ": " + String(error.message).split("\\n")[0])
  }
}

const databases = new Map()
function connect(place) {
  const key = JSON.stringify(place)
  const known = databases.get(key)
  databases.delete(key)
  const connection = known ?? open(place.file)
  if (!known) {
    if (place.script !== undefined) connection.database.exec(place.script)
    const reject = (name) => () => { throw new Error(name + "() is not allowed here: its results differ from one time to the next") }
    connection.database.function("random", reject("random"))
    connection.database.function("randomblob", (_size) => reject("randomblob")())
    connection.database.exec("PRAGMA temp_store = MEMORY; PRAGMA query_only = ON")
  }
  databases.set(key, connection)
  if (databases.size > ${mostOpen}) {
    const [oldest, { database }] = databases.entries().next().value
    databases.delete(oldest)
    database.close()
  }
  return connection
}

function answer({ database, sql }) {
  let connection
  try {
    connection = connect(database)
  } catch (error) {
    return { failure: String(error.message) }
  }
  try {
    const statement = connection.prepare(sql)
    const columns = statement.columns().map(({ name }) => name)
    const rows = []
    let bytes = 0
    for (const row of statement.iterate()) {
      if (rows.length === ${mostRows}) return { error: "the result has more than ${mostRows} rows" }
      for (const value of row) bytes += value?.length ?? 8
      if (bytes > ${mostBytes}) return { error: "the result is larger than ${mostBytes / 2 ** 20} MiB" }
      rows.push(row.map((value) => (typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value)))
    }
    return { columns, rows }
  } catch (error) {
    return { error: String(error.message) }
  }
}

if (open) process.on("message", (request) => process.send({ answer: answer(request) }))
process.on("disconnect", () => process.exit())
process.send(open ? { ready: driver } : { missing: missing.join("; ") })
`
