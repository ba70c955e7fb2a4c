import { nearestName } from "../options/nearest.ts"
import type { CustomValue, OptionFields } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { alfworldFields } from "./alfworld/options.ts"
import { blackjack, blackjackFields } from "./cards/blackjack.ts"
import { ezPoints, ezPointsFields } from "./cards/ez-points.ts"
import { numberLine, numberLineFields } from "./cards/number-line.ts"
import { points24, points24Fields } from "./cards/points24.ts"
import type { Environment, TaskProvider } from "./environment.ts"
import { openEnvFields } from "./openenv/options.ts"
import { searchFields } from "./search/options.ts"
import { sokobanFields } from "./sokoban/options.ts"
import { sqlFields } from "./sql/options.ts"
import { taskFileFields } from "./tasks/tasks.ts"
import { webShopFields } from "./webshop/options.ts"

// Large environments are imported when they are opened. Every factory checks its own options, so values of a configuration file can be
// passed unchecked.
const environments = {
  sokoban: { open: lazily(() => import("./sokoban/sokoban.ts"), "sokoban"), fields: sokobanFields },
  alfworld: { open: lazily(() => import("./alfworld/alfworld.ts"), "alfworld"), fields: alfworldFields },
  "number-line": { open: numberLine, fields: numberLineFields },
  "ez-points": { open: ezPoints, fields: ezPointsFields },
  points24: { open: points24, fields: points24Fields },
  blackjack: { open: blackjack, fields: blackjackFields },
  openenv: { open: lazily(() => import("./openenv/openenv.ts"), "openenv"), fields: openEnvFields },
  search: { open: lazily(() => import("./search/search.ts"), "search"), fields: searchFields },
  sql: { open: lazily(() => import("./sql/sql.ts"), "sql"), fields: sqlFields },
  webshop: { open: lazily(() => import("./webshop/webshop.ts"), "webshop"), fields: webShopFields },
  tasks: { open: lazily(() => import("./tasks/tasks.ts"), "taskFile"), fields: taskFileFields },
}

function lazily<Key extends string, Options, Made>(
  load: () => Promise<{ readonly [Name in Key]: (options: Options) => Made }>,
  name: Key,
) {
  return async (options: Options): Promise<Awaited<Made>> => await (await load())[name](options)
}

type Environments = typeof environments

/** Name of a built-in environment. */
export type EnvironmentName = keyof Environments

/** Options of a built-in environment; any object if the name is not known at compile time. */
export type EnvironmentOptions<Name extends string> = Name extends EnvironmentName
  ? Parameters<Environments[Name]["open"]>[0]
  : object

/** Built-in environment of a name, with its task type. */
export type NamedEnvironment<Name extends string> = Name extends EnvironmentName
  ? Awaited<ReturnType<Environments[Name]["open"]>>
  : Environment

/** Names of the built-in environments, which `openEnvironment` accepts. */
export const environmentNames: readonly string[] = Object.keys(environments)

/** Option fields of each built-in environment, by name. */
export const environmentFields: Readonly<Record<string, OptionFields>> = Object.fromEntries(
  Object.entries(environments).map(([name, { fields }]) => [name, fields]),
)

/** Opens a built-in environment; see `openEnvironment`. */
export async function openNamed<Name extends string>(
  name: Name,
  options?: EnvironmentOptions<Name>,
): Promise<NamedEnvironment<Name>> {
  if (!Object.hasOwn(environments, name)) {
    const near = nearestName(String(name), environmentNames)
    const hint = near === undefined ? "." : `; did you mean "${near}"?`
    throw new GigpoError(
      "BAD_CONFIG",
      `There is no environment "${name}"${hint} Known: ${environmentNames.join(", ")}.`,
    )
  }
  const open = environments[name as EnvironmentName].open as (options?: object) => TaskProvider | Promise<TaskProvider>
  return (await open(options)) as NamedEnvironment<Name>
}

/** Custom environment as the value of an option. */
export const customEnvironment: CustomValue<Environment> = hasParts(["tasks", "start", "prompt", "parse"])

/** Custom environment for an agent as the value of an option: only the tasks are needed. */
export const customTasks: CustomValue<TaskProvider> = hasParts(["tasks"])

function hasParts<Value extends TaskProvider>(functions: readonly (keyof Environment & string)[]): CustomValue<Value> {
  return {
    validate: (value) => {
      const parts = (value ?? {}) as Partial<Environment>
      const named = typeof parts.name === "string" && parts.name.trim() !== ""
      const wanted = ["name", ...functions]
      return named && functions.every((part) => typeof parts[part] === "function")
        ? undefined
        : `must be an environment: an object with ${wanted.slice(0, -1).join(", ")} and ${wanted.at(-1)}`
    },
  }
}
