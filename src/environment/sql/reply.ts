import { hasThought, type Thinking } from "../agent.ts"
import type { ParsedAction } from "../environment.ts"
import { readTagged } from "../tags.ts"

/** What a reply may hold: a statement to look at the database, or the one that answers. */
const tags = ["sql", "answer"] as const

/** The reply's statement in its tags; of both kinds the first is run, and the reply is invalid. Never throws. */
export function readSqlReply(reply: string, thinking: Thinking): ParsedAction {
  const found = tags.filter((tag) => readTagged(reply, tag).answer !== undefined)
  const [tag] = found
  const thought = thinking !== "required" || hasThought(reply)
  return {
    action: tag === undefined ? "" : `<${tag}>${readTagged(reply, tag).answer}</${tag}>`,
    valid: found.length === 1 && thought,
  }
}

/** The statement of an action, and whether it answers. */
export function statementOf(action: string): { readonly sql: string; readonly answers: boolean } | undefined {
  const [sql, answer] = tags.map((tag) => readTagged(action, tag).answer)
  if (sql !== undefined) return { sql, answers: false }
  return answer === undefined ? undefined : { sql: answer, answers: true }
}
