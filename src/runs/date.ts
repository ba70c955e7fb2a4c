import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { wallClock } from "../tokenizer/jinja/strftime.ts"
import { GigpoError } from "../util/errors.ts"
import type { RunConfig } from "./config.ts"
import type { Run } from "./run.ts"

/** The date of a run's prompts, as its config.json has it. */
export function dateIn({ chat, promptDate }: RunConfig): string | undefined {
  const set = (chat as { readonly now?: unknown } | undefined)?.now
  const date = set ?? promptDate
  return typeof date === "string" ? date : undefined
}

/**
 * Settles the date that the prompts of a run show, so that it does not change at midnight. Returns the date in force;
 * undefined where its prompts show none.
 *
 * @param before - of the run that is resumed or forked. Default: now.
 */
export function settleDate(tokenizer: ChatCodec, before?: string): string | undefined {
  return tokenizer.keepDate?.(before ?? wallClock(new Date()))
}

/**
 * Settles the date of a run's prompts, which the run keeps; undefined where they show none. A resumed run keeps its date, a fork that of the
 * run it is of.
 *
 * @throws GigpoError `BAD_CONFIG` where a resumed run is given another date
 */
export async function runDate(tokenizer: ChatCodec, run: Run | undefined): Promise<string | undefined> {
  const origin = await run?.origin()
  const before = origin && dateIn(origin.config)
  const date = settleDate(tokenizer, before)
  if (before !== undefined && date !== undefined && date !== before && !origin!.forked)
    throw new GigpoError(
      "BAD_CONFIG",
      `The run in ${origin!.directory} was begun with the date ${before} in its prompts (chat.now), not ${date}: set it back to resume the run.`,
    )
  return date
}
