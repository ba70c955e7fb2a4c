import { tooLong } from "../../rollout/check-setup.ts"
import { GigpoError } from "../../util/errors.ts"
import { shapeOf } from "../shape.ts"
import type { Config } from "./config.ts"

/**
 * Rejects a configuration whose completion limit leaves no room for a prompt, before the model is opened. A model with
 * an unreadable config.json passes, since opening it reports the error. Agents pass too: their completions are cut to
 * the room left.
 *
 * @param directory - the model that plays
 * @throws GigpoError `BAD_CONFIG` with both numbers and the key
 */
export async function checkConfiguredLengths(config: Config, directory: string = config.model): Promise<void> {
  if (config.agent) return
  const { maxCompletionTokens } = config.training.rollout
  const own = (await shapeOf(directory).catch(() => undefined))?.model.maxPositions
  const positions = config.maxPositions ?? own
  if (positions === undefined || maxCompletionTokens < positions) return
  const given =
    config.maxPositions === undefined
      ? `the model ${directory} has ${positions} positions`
      : `maxPositions is ${positions}`
  throw new GigpoError("BAD_CONFIG", `${tooLong("training.rollout.maxCompletionTokens", maxCompletionTokens, given)}.`)
}
