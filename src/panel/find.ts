import { display } from "../options/display.ts"
import { nearestName } from "../options/nearest.ts"
import { GigpoError } from "../util/errors.ts"
import type { PanelDefinition } from "./definition.ts"
import { readPanelFile } from "./panel-file.ts"
import { shippedPanels } from "./shipped.ts"

/** The panels that ship, by name. */
export const panelNames: readonly string[] = shippedPanels.map(({ name }) => name)

/** What a panel is: one that ships, or that of the file at that path, whose name ends in .json. Rejects with `BAD_ARGUMENT`, `BAD_DATA`. */
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
    `There is no panel ${display(panel)}. ${hint} Panels of your own are files whose names end in .json.`,
  )
}
