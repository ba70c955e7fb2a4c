/** Most characters of a statement. */
export const longestStatement = 20_000

/**
 * What is wrong with this text as one statement that only reads; undefined where nothing is. SQLite refuses the rest itself (databases
 * are opened for reading alone), but not what leaves a database as it is and reaches beyond it: ATTACH, VACUUM INTO, PRAGMA. And not
 * every driver tells of a second statement behind the first.
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

/** Each comment as a space, each literal and each quoted name as one letter. What is left open goes on to the end. */
export function withoutQuoted(sql: string): string {
  return sql.replace(
    /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$)/g,
    (quoted) => (/^(?:--|\/\*)/.test(quoted) ? " " : "x"),
  )
}
