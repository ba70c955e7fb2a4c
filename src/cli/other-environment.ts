import { madeFor } from "../model-files/made-for.ts"
import type { Config } from "./config/config.ts"

/**
 * Warns of a model that was made for another environment than the one that it is to play. Models without a record pass, and those that
 * an agent speaks to, which reads their replies itself.
 */
export async function warnOfOther(
  { agent }: Pick<Config, "agent">,
  directory: string,
  environment: string,
  say: (text: string) => void,
): Promise<void> {
  const made = agent ? undefined : await madeFor(directory)
  if (made === undefined || made === environment) return
  say(
    `The model ${directory} was made for ${made}, not for ${environment}: it may not know the form of the replies that ${environment} reads.`,
  )
}
