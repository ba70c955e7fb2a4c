import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { wallClock } from "../tokenizer/jinja/strftime.ts"
import { GigpoError } from "../util/errors.ts"
import type { RunConfig } from "./config.ts"
import type { Run } from "./run.ts"

/** Returns the date in the prompts of a run, from config.json. */
export function dateIn({ chat, promptDate }: RunConfig): string | undefined {
  const set = (chat as { readonly now?: unknown } | undefined)?.now
  const date = set ?? promptDate
  return typeof date === "string" ? date : undefined
}

/**
 * Fixes the date in the prompts of a run, so that the date does not change at midnight.
 *
 * @param before - date of the run that is resumed or forked. Default: the current date.
 * @returns the date; undefined if the prompts show none
 */
export function settleDate(tokenizer: ChatCodec, before?: string): string | undefined {
  return tokenizer.keepDate?.(before ?? wallClock(new Date()))
}

/**
 * Fixes the date in the prompts of a run. A resumed run keeps its date. A fork keeps the date of the original run.
 *
 * @returns the date; undefined if the prompts show none
 * @throws GigpoError `BAD_CONFIG` if a resumed run is given another date.
 */
export async function runDate(tokenizer: ChatCodec, run: Run | undefined): Promise<string | undefined> {
  const origin = await run?.origin()
  const before = origin && dateIn(origin.config)
  const date = settleDate(tokenizer, before)
  if (before !== undefined && date !== undefined && date !== before && !origin!.forked)
    throw new GigpoError(
      "BAD_CONFIG",
      `The run in ${origin!.directory} was started with the date ${before} in its prompts (chat.now), not ${date}: set chat.now to ${before} to resume the run.`,
    )
  return date
}
