import { isDeepStrictEqual } from "node:util"
import type { Environment } from "../environment/environment.ts"
import { environmentFields } from "../environment/registry.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { checkTasks, checkWorld } from "./check.ts"
import type { PanelDefinition } from "./definition.ts"
import { panelDigests, promptDigest, worldDigest } from "./digest.ts"
import type { PanelDigests } from "./evaluation-file.ts"
import { describePanel } from "./find.ts"
import { withTasks } from "./fixed-tasks.ts"
import { asking, limits, located, pick, speech, training } from "./options.ts"
import { withKinds } from "./plays.ts"
import { type OpenPanelOptions, open, surveyWorld } from "./survey.ts"
import type { PanelTask } from "./tasks.ts"

export type { OpenPanelOptions } from "./survey.ts"

/** A panel that was opened, and found to be what it was. */
export interface Panel<Task = unknown> {
  /** With its version: "households/unseen@1". */
  readonly name: string
  readonly tasks: readonly PanelTask<Task>[]
  readonly digests: PanelDigests
  /** Whether the agent is spoken to as the environment's defaults have it. */
  readonly usualPrompt: boolean
  /** Its held-out tasks are the panel's. What is random in an episode is keyed by panel and task alone. */
  readonly environment: Environment<Task>
  /** What the environment was opened with. */
  readonly options: Readonly<Record<string, unknown>>
  /** Names of options that were given and that the panel sets otherwise. */
  readonly replaced: readonly string[]
}

const optionKeys: KeysOf<OpenPanelOptions> = { concurrency: true, signal: true }

/**
 * Opens a panel, and plays through it, so that what is evaluated is the very same everywhere: the tasks, and what the environment
 * answers.
 *
 * @param panel - the name of one that ships ("households/unseen@1"), or the path of a file of `pinPanel`.
 * @param options - the environment's, as a configuration has them. Those that say how the agent is spoken to, where data is, and what a
 * machine allows are taken; the others make the world, which the panel sets (`replaced`).
 * @throws GigpoError `BAD_ARGUMENT` for a panel that there is not, `BAD_CONFIG` for options, `BAD_DATA` where data, or what the
 * environment makes of it, is not the panel's
 */
export async function openPanel(
  panel: string,
  options: Readonly<Record<string, unknown>> = {},
  how: OpenPanelOptions = {},
): Promise<Panel> {
  checkArguments("openPanel", options)
  checkArguments("openPanel", how, optionKeys)
  const definition = await describePanel(panel)
  const { opened, replaced } = settle(definition, options)
  const survey = await surveyWorld(definition, opened, how, (chosen) => checkTasks(definition, chosen))
  const { tasks, plays } = survey
  const world = await worldDigest(tasks, plays, how.signal)
  checkWorld(definition, world)
  const isUsual = Object.keys(opened).every((key) => !speech.includes(key))
  const environment = isUsual ? survey.environment : await open(definition.environment, opened, how.signal)
  const prompt = await promptDigest(environment, plays, how.signal)
  const { name } = definition
  const told = withKinds(tasks, plays)
  const digests = await panelDigests(world, prompt)
  const usualPrompt = prompt === definition.digests.prompt
  const own = withTasks(name, environment, told)
  return { name, tasks: told, digests, usualPrompt, environment: own, options: opened, replaced }
}

/** What the environment of a panel is opened with, and which of the given options the panel sets otherwise. */
function settle(definition: PanelDefinition, given: Readonly<Record<string, unknown>>) {
  const { environment, name, options } = definition
  const missing = definition.places.find((place) => given[place] === undefined)
  if (missing !== undefined)
    throw new GigpoError(
      "BAD_CONFIG",
      `The panel ${name} needs the option ${missing} of ${environment}, which says where its data is.`,
    )
  const taken = [...speech, ...limits, ...definition.places, ...(definition.places.length > 0 ? asking : [])]
  const fields = environmentFields[environment]!
  const unknown = Object.keys(given).filter((key) => !Object.hasOwn(fields, key))
  // Unknown ones are refused by the environment, in its own words.
  const kept = Object.entries(pick(given, [...taken, ...unknown])).filter(([, value]) => value !== undefined)
  const opened = located({ ...Object.fromEntries(kept), ...options })
  const usual = (key: string) => (fields[key] as { readonly fallback?: unknown }).fallback
  const differs = (key: string) => !isDeepStrictEqual(given[key], options[key] ?? usual(key))
  const set = Object.keys(given).filter(
    (key) => given[key] !== undefined && ![...taken, ...unknown, ...training].includes(key),
  )
  return { opened, replaced: set.filter(differs) }
}
