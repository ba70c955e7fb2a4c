import { GigpoError } from "../util/errors.ts"

/** Error that ends an episode by a limit. The steps so far count. */
export class EndOfEpisode extends GigpoError {
  readonly outcome: "overflow" | "truncated"

  constructor(outcome: "overflow" | "truncated", message: string) {
    super("BAD_ARGUMENT", message)
    this.outcome = outcome
  }
}

/** Throws `EndOfEpisode` where a prompt and its completion do not fit the model. */
export function checkFits(prompt: number, maxTokens: number, maxPositions: number): void {
  if (prompt + maxTokens <= maxPositions) return
  throw new EndOfEpisode(
    "overflow",
    `A prompt of ${prompt} tokens and a completion of ${maxTokens} do not fit the model's ${maxPositions} positions; shorten the prompt or lower maxTokens.`,
  )
}
