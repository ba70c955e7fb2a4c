import { boolean } from "../options/field.ts"
import type { Named } from "../options/named.ts"
import { isClass } from "../options/own.ts"
import type { CustomValue, OptionFields } from "../options/table.ts"
import type { Agent } from "./agent.ts"
import { processAgent, processFields } from "./process-agent.ts"

/** Built-in agents, by their names in configurations. */
export const agents = {
  process: { fields: processFields, make: processAgent },
} satisfies Readonly<Record<string, Named<OptionFields, Agent>>>

/** Options of any agent. */
export const aroundAgent = {
  normalize: boolean(
    false,
    "Remove times, UUIDs and ids of calls from default anchor states, if the agent does not set them.",
  ),
}

/** Agent of a module. */
export const customAgent: CustomValue<Agent> = {
  validate: (value) =>
    typeof value === "function" && !isClass(value)
      ? undefined
      : "must be an agent: a function (task, { openai, model, … }) => { reward }",
}
