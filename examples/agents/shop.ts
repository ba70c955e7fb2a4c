// The world of these agents: a shop whose books are a SQLite database, and questions that are answered by looking things up and
// reckoning. Each client's agent has these tools and is graded like this.
import {
  type AgentContext,
  type AgentExpert,
  type AgentResult,
  type ExpertMessage,
  openEnvironment,
  Random,
} from "gigpo"
import type { SqlTask } from "gigpo/environments/sql"

/** Offers the questions; who plays are the agents. */
export const shop = await openEnvironment("sql", { kinds: ["town", "basket", "earned", "change"] })

export const instructions =
  "Tables: item(name, price, maker), maker(name, town), sale(item, count). Answer in one word."

/** Most calls of the model in one episode. */
export const maxSteps = 6

/** What an agent can do, for one task. `run` takes what the model gave, whatever that is, and never throws. */
export function toolsOf({ database }: SqlTask, { step, signal }: AgentContext) {
  const found = new Set<string>()
  const run = async (sql: unknown) => {
    const result = await shop.databases.query(database, String(sql), signal)
    const text =
      "error" in result
        ? result.error
        : result.rows
            .slice(0, 3)
            .map((row) => row.join(" "))
            .join(", ")
    if (!("error" in result)) found.add(`${sql}: ${text}`)
    step({ anchor: [...found].sort().join("\n") }) // what is known, in whatever order it was found
    return text
  }
  const tool = (name: string, argument: string, run: (value: unknown) => Promise<string>) => ({
    name,
    description: `Takes ${argument}.`,
    parameters: { type: "object", properties: { [argument]: { type: "string" } } } as const,
    run: (given: unknown) => run((given as Record<string, unknown> | null)?.[argument]),
  })
  return [
    tool("query", "sql", run),
    tool("calculate", "expression", async (value) =>
      /^[\d\s+*/().-]+$/.test(String(value)) ? await run(`SELECT ${value}`) : "this is no sum",
    ),
  ]
}

/** The tools as OpenAI's API takes them. */
export function functionsOf(tools: ReturnType<typeof toolsOf>) {
  return tools.map(({ run: _, ...described }) => ({ type: "function" as const, function: described }))
}

/** Right is what the gold statement gives. */
export async function grade({ database, gold }: SqlTask, answer: string, signal: AbortSignal): Promise<AgentResult> {
  const right = await shop.databases.query(database, gold, signal)
  const success = "rows" in right && answer.trim() === `${right.rows[0]?.[0]}`
  return { reward: success ? 1 : 0, success }
}

/** Looks up one thing after the other, reckons, and answers. */
export const expert: AgentExpert<SqlTask> = ({ plan }, messages) => {
  const values = valuesIn(messages)
  const fill = (text: string) => text.replace(/\$(\d)/g, (_, n) => values[n - 1]!)
  const { lookups, sum } = plan!
  if (values.length < lookups.length) return call("query", "sql", fill(lookups[values.length]!))
  if (sum && values.length === lookups.length) return call("calculate", "expression", fill(sum))
  return values.at(-1)!
}

/** The same in a hurry: whenever it has found something it answers with that, once in two. What haste costs, the reward will tell. */
export const hastyExpert: AgentExpert<SqlTask> = (task, messages) => {
  const values = valuesIn(messages)
  const hasty = values.length > 0 && new Random(0).derive("haste", task.id, values.length).below(2) === 0
  return hasty ? values.at(-1)! : expert(task, messages)
}

function valuesIn(messages: Parameters<AgentExpert<SqlTask>>[1]): string[] {
  return messages.filter(({ role }) => role === "tool").map(({ content }) => content)
}

/** A message that calls one tool; the model's chat template writes it. */
function call(name: string, argument: string, value: string): ExpertMessage {
  return { tool_calls: [{ function: { name, arguments: { [argument]: value } } }] }
}
