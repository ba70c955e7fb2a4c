import { display } from "../options/display.ts"
import { nearestName } from "../options/nearest.ts"
import { GigpoError } from "../util/errors.ts"
import type { PanelDefinition } from "./definition.ts"
import { readPanelFile } from "./panel-file.ts"
import { shippedPanels } from "./shipped.ts"

/** Names of the built-in panels. */
export const panelNames: readonly string[] = shippedPanels.map(({ name }) => name)

/**
 * Returns the definition of a built-in panel by name, or of a panel file by a path that ends in .json.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an unknown panel, `BAD_DATA` for an invalid file.
 */
export async function describePanel(panel: string): Promise<PanelDefinition> {
  if (typeof panel !== "string") throw unknown(panel)
  const found = shippedPanels.find(({ name }) => name === panel)
  if (found) return found
  if (panel.endsWith(".json")) return await readPanelFile(panel)
  throw unknown(panel)
}

function unknown(panel: unknown): GigpoError {
  const near = nearestName(String(panel), panelNames)
  const hint = near === undefined ? `Known: ${panelNames.join(", ")}.` : `Did you mean ${near}?`
  return new GigpoError(
    "BAD_ARGUMENT",
    `There is no panel ${display(panel)}. ${hint} A custom panel is given as the path of a file that ends in .json.`,
  )
}
