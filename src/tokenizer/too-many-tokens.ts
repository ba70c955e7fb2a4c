import { GigpoError } from "../util/errors.ts"

/** Refusal of a text that has more tokens than its place can hold. */
export class TooManyTokens extends GigpoError {
  constructor(most: number) {
    super("BAD_ARGUMENT", `The text has more than ${most} tokens: shorten it`)
  }
}
