import { madeFor } from "../model-files/made-for.ts"
import type { Config } from "./config/config.ts"

/**
 * Warns if a model was made for another environment than the one to play. Models without a record and models behind an
 * agent are not checked.
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
    `The model ${directory} was made for ${made}, not for ${environment}: it may not produce completions that ${environment} can parse.`,
  )
}
