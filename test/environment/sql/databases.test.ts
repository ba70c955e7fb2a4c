import { type ChildProcess, spawn } from "node:child_process"
import diagnostics from "node:diagnostics_channel"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { idleTime } from "../../../src/environment/sql/database-worker.ts"
import { SqlDatabases } from "../../../src/environment/sql/databases.ts"
import { processSource } from "../../../src/environment/sql/process-source.ts"

const script = "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y')"
const endless = "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c)"

const forEver = `${endless} SELECT count(*) FROM c`

let databases: SqlDatabases
let folder: string
beforeAll(async () => {
  databases = new SqlDatabases({ timeLimit: 60, memoryLimit: 192, processes: 1 })
  folder = await mkdtemp(join(tmpdir(), "gigpo-sql-"))
})
afterAll(async () => {
  await databases[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const ask = (sql: string) => databases.query({ script }, sql)

describe("databases", () => {
  it("return rows as lists, including duplicate names and every type of value", async () => {
    expect(await ask("SELECT a AS b, b FROM t")).toEqual({ columns: ["b", "b"], rows: [[1, "x"], [2, "y"]] }) // biome-ignore format: one line
    const values = await ask("WITH one AS (SELECT 9007199254740993, 1.5, NULL, x'00ff') SELECT * FROM one;")
    const [whole, real, none, bytes] = "rows" in values ? values.rows[0]! : []
    expect([whole, real, none, [...(bytes as Uint8Array)]]).toEqual([9007199254740993n, 1.5, null, [0, 255]])
    expect(await ask("VALUES (1), (2)")).toMatchObject({ rows: [[1], [2]] })
    expect(await ask("SELECT ';' -- ; \n ;")).toMatchObject({ rows: [[";"]] })
  })

  it("reject statements that do more than read, and continue", async () => {
    const file = join(folder, "made.db")
    for (const [sql, error] of [
      ["INSERT INTO t VALUES (3, 'z')", "only SELECT"],
      ["DROP TABLE t", "only SELECT"],
      [`ATTACH '${file}' AS made`, "only SELECT"],
      [`VACUUM INTO '${file}'`, "only SELECT"],
      ["PRAGMA query_only = OFF", "only SELECT"],
      ["/* SELECT */ PRAGMA query_only = OFF", "only SELECT"],
      ["EXPLAIN SELECT 1", "only SELECT"],
      ["WITH gone AS (SELECT 1) DELETE FROM t", "read"],
      ["SELECT 1; DROP TABLE t", "one statement"],
      ["SELECT 1; SELECT 2", "one statement"],
      ["SELECT ''';'; DROP TABLE t; --'", "one statement"],
      ["SELECT `;`; DROP TABLE t", "one statement"],
      ["SELECT [';]; DROP TABLE t", "one statement"],
      ["SELECT /* ' */ 1; DROP TABLE t", "one statement"],
      ["SELECT load_extension('x')", "not authorized"],
      [`SELECT writefile('${file}', 'x')`, "no such function"],
      ["SELECT readfile('/etc/passwd')", "no such function"],
      ["SELECT random()", "not allowed"],
      ["SELECT randomblob(1000000000)", "not allowed"],
      ["SELECT 'a\0b'", "null characters"],
      [`SELECT '${"a".repeat(30_000)}'`, "20000 characters"],
      ["", "no statement"],
      [" -- nothing", "no statement"],
      ["SELECT FROM", "syntax"],
    ] as const)
      expect(await ask(sql), sql).toEqual({ error: expect.stringContaining(error) })
    expect(existsSync(file)).toBe(false)
    expect(await ask("SELECT count(*) FROM t")).toMatchObject({ rows: [[2]] })
  })

  it("end statements that exceed the memory or row limit, and answer the next", async () => {
    for (const sql of [
      "SELECT length(hex(zeroblob(400000000)))",
      `${endless} SELECT max(length(y)) FROM (SELECT zeroblob(900000) || x AS y FROM c ORDER BY y)`,
      "SELECT replace(hex(zeroblob(100000)), '0', hex(zeroblob(2000)))",
    ])
      expect(await ask(sql), sql).toEqual({ error: "the query took more than 192 MiB" })
    expect(await ask(`${endless} SELECT x FROM c`)).toEqual({ error: "the result has more than 10000 rows" })
    expect(await ask("SELECT count(*) FROM t")).toMatchObject({ rows: [[2]] })
  })

  it("end slow statements without blocking the program, and answer waiting ones", async () => {
    await using impatient = new SqlDatabases({ timeLimit: 0.2, processes: 1 })
    let turns = 0
    const turn = setInterval(() => turns++, 1)
    const slow = impatient.query({ script }, forEver)
    const waiting = impatient.query({ script }, "SELECT count(*) FROM t")
    expect(await slow).toEqual({ error: "the query took longer than 0.2 s" })
    expect(await waiting).toMatchObject({ rows: [[2]] })
    clearInterval(turn)
    expect(turns).toBeGreaterThan(10)
  })

  it("abort a running statement, and remove a queued one", async () => {
    await using own = new SqlDatabases({ timeLimit: 3600, processes: 1 })
    await own.check()
    const [running, queued] = [new AbortController(), new AbortController()]
    const asked = [running, queued].map(({ signal }) => own.query({ script }, forEver, signal))
    const last = own.query({ script }, "SELECT count(*) FROM t")
    queued.abort(new Error("no more"))
    await expect(asked[1]).rejects.toThrow("no more")
    running.abort(new Error("enough"))
    await expect(asked[0]).rejects.toThrow("enough")
    expect(await last).toMatchObject({ rows: [[2]] })
    await expect(own.query({ script }, "SELECT 1", running.signal)).rejects.toThrow("enough")
  })

  it("reject waiting calls when disposed, and leave and start no process", async () => {
    const children = childrenOf()
    const own = new SqlDatabases({ timeLimit: 3600, processes: 1 })
    await own.check()
    const asked = [1, 2, 3].map(() => own.query({ script }, forEver))
    const told = Promise.allSettled(asked)
    await own[Symbol.asyncDispose]()
    expect(children.map(({ signalCode }) => signalCode)).toEqual(["SIGKILL"])
    for (const { status, reason } of (await told) as PromiseRejectedResult[])
      expect([status, reason.code]).toEqual(["rejected", "DISPOSED"])
    await expect(own.query({ script }, "SELECT 1")).rejects.toThrow("disposed")
    expect(children.length).toBe(1)
  })

  it("end an idle process, and start another when needed", async () => {
    await using own = new SqlDatabases({ processes: 1 })
    const children = childrenOf()
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      await own.check()
      await vi.advanceTimersByTimeAsync((idleTime - 1) * 1000)
      await own.check()
      await vi.advanceTimersByTimeAsync((idleTime - 1) * 1000)
      expect(children.map(({ killed }) => killed)).toEqual([false])
      await vi.advanceTimersByTimeAsync(1000)
      expect(children[0]!.killed).toBe(true)
      expect(await own.query({ script }, "SELECT count(*) FROM t")).toMatchObject({ rows: [[2]] })
      expect(children.length).toBe(2)
    } finally {
      vi.useRealTimers()
    }
  })

  it("do not attribute an earlier crash of the process to a statement", async () => {
    await using own = new SqlDatabases({ processes: 1 })
    const children = childrenOf()
    await own.check()
    for (const known of [true, false]) {
      const child = children.at(-1)!
      const ended = once(child, "exit")
      process.kill(child.pid!, "SIGKILL")
      if (known) await ended
      expect(await own.query({ script }, "SELECT count(*) FROM t")).toMatchObject({ rows: [[2]] })
    }
    expect(children.length).toBe(3)
  })

  it("include numbers in the size of a result", async () => {
    const columns = Array.from({ length: 1000 }, () => "x").join()
    const sql = `WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c LIMIT 1000) SELECT ${columns} FROM c`
    expect(await ask(sql)).toEqual({ error: "the result is larger than 4 MiB" })
    expect(await ask(`${sql} LIMIT 500`)).toMatchObject({ rows: { length: 500 } })
  })

  it("name a database that cannot be opened", async () => {
    const file = join(folder, "none.sqlite")
    const bad = { code: "BAD_DATA", message: expect.stringContaining(file) }
    await expect(databases.query({ file }, "SELECT 1")).rejects.toThrow(expect.objectContaining(bad))
    await expect(databases.query({ script: "CREATE nonsense" }, "SELECT 1")).rejects.toThrow("cannot open a database's")
  })

  it("use Node's SQLite if better-sqlite3 is missing, and report if neither exists", async () => {
    const elsewhere = pathToFileURL(join(folder, "nobody.js")).href
    const child = spawn(process.execPath, ["-e", processSource, elsewhere, "1e12"], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    })
    const [told] = await once(child, "message")
    child.kill()
    const { StatementSync } = (process.getBuiltinModule("node:sqlite" as "fs") ?? {}) as { StatementSync?: { prototype: object } } // biome-ignore format: one line
    const own = StatementSync !== undefined && "setReturnArrays" in StatementSync.prototype
    expect(told).toEqual(
      own ? { ready: "node:sqlite" } : { missing: expect.stringContaining("better-sqlite3: Cannot find") },
    )
  })

  it("end with their parent process, even if busy", async () => {
    const parent = spawn(process.execPath, ["-e", orphaning], { stdio: ["ignore", "pipe", "inherit"] })
    const pid = await new Promise<number>((resolve) => parent.stdout.once("data", (data) => resolve(Number(data))))
    parent.kill("SIGKILL")
    await expect.poll(() => isRunning(pid), { timeout: 60_000 }).toBe(false)
  })
})

/** The processes that are started from now on, in this test. */
function childrenOf(): ChildProcess[] {
  const children: ChildProcess[] = []
  const note = (message: unknown) => children.push((message as { process: ChildProcess }).process)
  diagnostics.subscribe("child_process", note)
  onTestFinished(() => void diagnostics.unsubscribe("child_process", note))
  return children
}

/** Starts a process that is busy for ever, and says which. */
const orphaning = `
const { spawn } = require("node:child_process")
const child = spawn(process.execPath, ["-e", ${JSON.stringify(processSource)}, ${JSON.stringify(import.meta.url)}, "1e12"], {
  stdio: ["ignore", "ignore", "inherit", "ipc"], serialization: "advanced",
})
child.once("message", () => {
  child.send({ database: { script: "" }, sql: ${JSON.stringify(forEver)} }, () => console.log(child.pid))
})
setInterval(() => {}, 1000)
`

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
