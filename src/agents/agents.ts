import { boolean } from "../options/field.ts"
import type { Named } from "../options/named.ts"
import { isClass } from "../options/own.ts"
import type { CustomValue, Fields } from "../options/table.ts"
import type { Agent } from "./agent.ts"
import { processAgent, processFields } from "./process-agent.ts"

/** The agents that ship, by the names that configurations give them. */
export const agents = {
  process: { fields: processFields, make: processAgent },
} satisfies Readonly<Record<string, Named<Fields, Agent>>>

/** Options beside any agent. */
export const aroundAgent = {
  normalize: boolean(
    false,
    "Leave times, UUIDs and ids of calls out of what is compared, where the agent does not say in which state it is.",
  ),
}

/** An agent of one's own. */
export const customAgent: CustomValue<Agent> = {
  validate: (value) =>
    typeof value === "function" && !isClass(value)
      ? undefined
      : "must be an agent: a function (task, { openai, model, … }) => { reward }",
}
