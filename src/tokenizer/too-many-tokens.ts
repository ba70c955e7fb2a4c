import { GigpoError } from "../util/errors.ts"

/** Error for a text with too many tokens. */
export class TooManyTokens extends GigpoError {
  constructor(most: number) {
    super("BAD_ARGUMENT", `The text has more than ${most} tokens: shorten it`)
  }
}
