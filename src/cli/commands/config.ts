import { Command } from "commander"
import { unlessAborted } from "../../linked-abort.ts"
import { type ConfigArguments, setOption } from "../arguments.ts"
import { configuredPlayer, configuredTraining, moduleFields } from "../config/modules.ts"
import { renderConfig } from "../config/render.ts"
import { loadConfig } from "../config/resolve.ts"
import { interruptible } from "../terminal/interrupt.ts"

export function showConfigCommand(): Command {
  return new Command("config")
    .summary("explain the keys of a configuration file, or check one")
    .description(
      "Without a file: every key with its meaning and default. With one: checks it and shows what it comes to, defaults and " +
        "--set included. Paths in a configuration are relative to the working directory.",
    )
    .argument("[config]", "configuration file, YAML or JSON")
    .addOption(setOption())
    .action((file, options) => interruptible((signal) => unlessAborted(signal, () => runConfig(file, options))))
}

async function runConfig(file: string | undefined, options: ConfigArguments): Promise<void> {
  if (file === undefined) {
    process.stdout.write(renderConfig())
    return
  }
  const config = await loadConfig(file, options.set)
  await configuredPlayer(config)
  await configuredTraining(config)
  process.stdout.write(renderConfig(config, await moduleFields(config)))
}
