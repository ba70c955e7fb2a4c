import { existsSync } from "node:fs"
import { dirname } from "node:path"
import type { Command } from "commander"
import { GigpoError } from "../../util/errors.ts"
import { unlessAborted } from "../../util/linked-abort.ts"
import { visible } from "../../util/visible.ts"
import { setOption } from "../arguments.ts"
import { renderMainKeys } from "../config/brief.ts"
import { entryAt, isKey } from "../config/entry-at.ts"
import { checkConfiguredLengths } from "../config/lengths.ts"
import { configuredPlayer, configuredTraining, moduleFields } from "../config/modules.ts"
import { reachesOf } from "../config/reaches.ts"
import { renderConfig } from "../config/render.ts"
import { loadFile, readDocument, resolveDocument } from "../config/resolve.ts"
import { configSchema } from "../config/schema.ts"
import { checkTrainingSize } from "../config/sizes.ts"
import { interruptible } from "../terminal/interrupt.ts"

export function showConfigCommand(command: Command): Command {
  return command
    .description(
      "Without a file: the main options with their meaning and default. With a file: checks it and shows the resolved configuration, defaults and " +
        "--set included. A key selects one part: training, training.estimator, training.estimator.hgpo. Paths in a configuration are " +
        "relative to the working directory. --modules loads modules and contacts servers; otherwise module options are not validated.",
    )
    .argument("[config]", "configuration file, YAML or JSON")
    .argument("[key]", "part to show, with all keys below it, e.g. training.estimator; works without a file")
    .addOption(setOption())
    .option("--all", "show every key, and the options of every estimator, loss and environment")
    .option("--schema", "print the JSON Schema of configuration files, for editors")
    .option(
      "--modules",
      "also load the modules of the file (which runs their code) and open its environment (which may contact a server) to check them",
    )
    .action((file, key, options) =>
      interruptible((signal) => unlessAborted(signal, () => runConfig(file, key, options))),
    )
}

interface ShowArguments {
  readonly set: readonly string[]
  readonly modules?: boolean
  readonly all?: boolean
  readonly schema?: boolean
}

async function runConfig(first: string | undefined, second: string | undefined, options: ShowArguments): Promise<void> {
  const { all } = options
  if (options.schema) {
    if (first !== undefined || all) throw new GigpoError("BAD_ARGUMENT", "--schema takes no other argument.")
    process.stdout.write(`${JSON.stringify(configSchema(), null, 1)}\n`)
    return
  }
  const alone = first !== undefined && second === undefined && isKey(first) && !existsSync(first)
  const [file, key] = alone ? [undefined, first] : [first, second]
  if (file === undefined) {
    process.stdout.write(
      key === undefined && !all ? renderMainKeys() : renderConfig(undefined, undefined, { key, all }),
    )
    return
  }
  if (key !== undefined) entryAt(key)
  const parsed = await readDocument(file, options.set)
  const named = resolveDocument(parsed)
  const beyond = reachesOf(named, parsed, dirname(file)).some(({ kind }) => kind === "module" || kind === "server")
  const opens = options.modules || !beyond
  // --modules requests exactly this, also for the configuration of a run from elsewhere.
  const config = opens ? await loadFile(parsed, file, { trust: true }) : named
  checkTrainingSize(config)
  await checkConfiguredLengths(config)
  if (opens) {
    await configuredPlayer(config)
    await configuredTraining(config)
  }
  process.stdout.write(visible(renderConfig(config, opens ? await moduleFields(config) : undefined, { key, all })))
}
