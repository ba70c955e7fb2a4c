/** Maximum length of a statement in characters. */
export const longestStatement = 20_000

/**
 * Reason why a text is not a single read-only statement; undefined if it is one. Databases are opened read-only, so SQLite itself rejects
 * writes. It does not reject statements with effects outside the database: ATTACH, VACUUM INTO, PRAGMA. Not every driver rejects a second
 * statement.
 */
export function readOnlyProblem(sql: string): string | undefined {
  if (sql.length > longestStatement) return `a statement may have ${longestStatement} characters`
  if (sql.includes("\0")) return "a statement is text, without null characters"
  const bare = withoutQuoted(sql)
  const [statement = "", ...more] = bare.split(";")
  if (more.some((text) => text.trim() !== "")) return "one statement at a time"
  const verb = /^[\s(]*([a-z]*)/i.exec(statement)![1]!.toUpperCase()
  if (verb === "" && statement.trim() === "") return "there is no statement"
  return reading.has(verb) ? undefined : `only SELECT, WITH and VALUES are allowed here, not ${verb || "this"}`
}

const reading = new Set(["SELECT", "WITH", "VALUES"])

/** SQL with each comment replaced by a space, and each literal and quoted name by a letter. Unclosed quotes extend to the end. */
export function withoutQuoted(sql: string): string {
  return sql.replace(
    /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$)/g,
    (quoted) => (/^(?:--|\/\*)/.test(quoted) ? " " : "x"),
  )
}
