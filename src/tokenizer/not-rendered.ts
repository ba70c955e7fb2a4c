import { GigpoError } from "../util/errors.ts"

/** Error for a part of a chat that the model's chat template does not render. */
export class NotRendered extends GigpoError {
  /** Path of the part, e.g. `messages[2].tool_calls[0]`. */
  readonly field: string

  constructor(field: string, kind: string) {
    super(
      "BAD_TOKENIZER",
      `${field} does not appear in the prompt: the model's chat template does not render ${kind}. ` +
        "Omit it, or use a model (or a chat_template.jinja in its folder) whose template does",
    )
    this.field = field
  }
}
