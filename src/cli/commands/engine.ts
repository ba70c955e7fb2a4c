import { once } from "node:events"
import { basename, resolve } from "node:path"
import { type Command, Option } from "commander"
import type { DeviceName } from "../../engine/native/devices.ts"
import { NativePolicy } from "../../engine/native/native-policy.ts"
import { tinkerServer } from "../../engine-server/tinker-server.ts"
import { hashFile } from "../../files/manifest.ts"
import { keyFromEnvironment, newKey } from "../../http/key.ts"
import { listen } from "../../http/listen.ts"
import { refuseAdapter } from "../../model-files/adapter-files.ts"
import { readModelConfig } from "../../model-files/model-config.ts"
import { Tokenizer } from "../../tokenizer/tokenizer.ts"
import { list, wholeNumber } from "../arguments.ts"
import { parseDevice } from "../estimate/arguments.ts"
import { describeFailure } from "../fail.ts"
import { resolveModel } from "../model.ts"
import { activity } from "../terminal/activity.ts"
import { interruptible } from "../terminal/interrupt.ts"
import { Screen } from "../terminal/screen.ts"

interface EngineArguments {
  readonly host: string
  readonly port: number
  readonly name?: string
  readonly allowHost?: readonly string[]
  readonly checkpoints: string
  readonly checkpointSize?: number
  readonly models: number
  readonly device: DeviceName
  readonly precision?: "float32" | "bfloat16"
  readonly maxPositions?: number
  readonly alpha: number
}

/** Prefix that Tinker clients require of a key. */
const keyPrefix = "tml-"
const keyVariable = "GIGPO_API_KEY"

export function engineCommand(command: Command): Command {
  return command
    .description(
      "Serves this machine's engine over the Tinker API, to gigpo on another machine (engine.url in its configuration) or to Python's " +
        `tinker. The first two lines of standard output are the address and the key for clients. ${keyVariable} sets the key; by default it is ` +
        "random. Ctrl-C stops the server.",
    )
    .argument("<model>", "model folder, or a name on the Hugging Face Hub (owner/name)")
    .option("--host <address>", "address to listen on; 0.0.0.0: all interfaces", "127.0.0.1")
    .option("-p, --port <number>", "port to listen on; 0: any free port", wholeNumber(0, 65_535), 10_610)
    .option("--name <name>", "name of the model for clients; default: name of the folder")
    .option("--allow-host <name>", "additional host name of this server, e.g. of a proxy; repeatable", list)
    .option("--checkpoints <folder>", "folder for the weights that clients save", "checkpoints")
    .option(
      "--checkpoint-size <GiB>",
      "maximum total size of these weights; default: 90 % of the free disk space",
      wholeNumber(1, 1_000_000),
    )
    .option("--models <count>", "maximum number of models trained at once", wholeNumber(1, 64), 1)
    .option(
      "--alpha <number>",
      "LoRA alpha of adapters: their output is scaled by alpha / rank",
      wholeNumber(1, 65_536),
      32,
    )
    .option("--device <device>", "device to compute on: auto, cpu, cuda, cuda:0,1 or all", parseDevice, "auto")
    .addOption(
      new Option("--precision <dtype>", "number format (dtype); default: by device").choices(["float32", "bfloat16"]),
    )
    .option(
      "--max-positions <count>",
      "maximum tokens of a sequence; default: the model's maximum",
      wholeNumber(2, 2 ** 31 - 1),
    )
    .action((model, options) => interruptible((signal) => runEngine(model, options, signal), { saves: true }))
}

async function runEngine(named: string, options: EngineArguments, signal: AbortSignal): Promise<void> {
  const directory = await resolveModel(named, signal)
  const key = keyFromEnvironment(keyVariable, keyPrefix) ?? `${keyPrefix}${newKey()}`
  const { host, port, allowHost: names = [], device, precision, alpha, models } = options
  await refuseAdapter(directory)
  const { maxPositions: longest } = await readModelConfig(directory)
  const maxPositions = Math.min(options.maxPositions ?? longest, longest)
  const name = options.name ?? basename(resolve(named))
  const log = new Screen(process.stderr, { live: false })
  const shared = { device, maxPositions, ...(precision && { precision }) }
  const tokenizer = await Tokenizer.open(directory)
  const { eosTokens: stopTokens } = tokenizer
  await tokenizer.dispose()
  await using server = tinkerServer({
    ...{ model: name, maxPositions, stopTokens, key, models },
    tokenizer: await hashFile(`${directory}/tokenizer.json`),
    checkpoints: resolve(options.checkpoints),
    ...(options.checkpointSize !== undefined && { checkpointBytes: options.checkpointSize * 2 ** 30 }),
    open: async ({ rank, seed }) => {
      log.print(`Opening ${name} ${rank > 0 ? `with an adapter of rank ${rank}` : "to train all weights"}.`)
      return await NativePolicy.open(directory, { ...shared, ...(rank > 0 && { lora: { rank, alpha, seed } }) })
    },
    openFrozen: async (folder = directory) =>
      await NativePolicy.open(folder, { ...shared, base: directory, training: false }),
    onError: (error) => log.print(describeFailure(error)),
  })
  const http = await listen((request, client) => server.answer(request, client), {
    ...{ host, port, names, keys: server.keys, encodings: server.encodings },
    // A batch may arrive over a slow connection, and a result may take long to compute.
    limits: { request: 600_000, connections: 16_384 },
  })
  process.stdout.write(`${http.url}\n${key}\n`)
  log.print(`Serving ${name}; Ctrl-C stops the server.`)
  if (!signal.aborted) await activity.idle(() => once(signal, "abort"))
  await http.close()
}
