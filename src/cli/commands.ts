import { Command, Help, Option } from "commander"
import { renamed } from "../options/renamed.ts"
import { GigpoError } from "../util/errors.ts"

/** Entry of one command: its line in `gigpo --help`, and its definition, which is loaded only when the command is used. */
interface CommandEntry {
  readonly summary: string
  /** Options and arguments, as in the usage line of the command. */
  readonly usage: string
  readonly load: () => Promise<(command: Command) => Command>
}

/** Every command of gigpo, in the order of `gigpo --help`. */
export const commands: Readonly<Record<string, CommandEntry>> = {
  init: {
    summary: "create a small model and a configuration to start with",
    usage: "[options] [template] [directory]",
    load: async () => (await import("./commands/init.ts")).initCommand,
  },
  sft: {
    summary: "fine-tune a model on expert demonstrations or transcripts (SFT, DPO)",
    usage: "[options] [config]",
    load: async () => (await import("./commands/sft.ts")).sftCommand,
  },
  train: {
    summary: "train a model with reinforcement learning",
    usage: "[options] [config]",
    load: async () => (await import("./commands/train.ts")).trainCommand,
  },
  gateway: {
    summary: "train an external agent program, in any language",
    usage: "[options] [config] [command...]",
    load: async () => (await import("./commands/train.ts")).gatewayCommand,
  },
  anchors: {
    summary: "measure how often states repeat within a group (GiGPO's anchor states)",
    usage: "[options] [config] [command...]",
    load: async () => (await import("./commands/anchors.ts")).anchorsCommand,
  },
  view: {
    summary: "show runs in the browser while they train",
    usage: "[options] [runs...]",
    load: async () => (await import("./commands/view.ts")).viewCommand,
  },
  report: {
    summary: "write runs into one self-contained HTML file",
    usage: "[options] [runs...]",
    load: async () => (await import("./commands/report.ts")).reportCommand,
  },
  evaluate: {
    summary: "measure a model's success rate on held-out tasks",
    usage: "[options] [config]",
    load: async () => (await import("./commands/evaluate.ts")).evaluateCommand,
  },
  compare: {
    summary: "compare evaluations of models on one benchmark, with significance tests",
    usage: "[options] <evaluations...>",
    load: async () => (await import("./commands/compare.ts")).compareCommand,
  },
  benchmark: {
    summary: "list, show, create and export benchmarks: fixed sets of held-out tasks",
    usage: "[options] [command]",
    load: async () => (await import("./commands/benchmark.ts")).benchmarkCommand,
  },
  runs: {
    summary: "list runs with progress, success rate and time left",
    usage: "[options] [folder]",
    load: async () => (await import("./commands/runs.ts")).runsCommand,
  },
  episodes: {
    summary: "read the recorded episodes of a run",
    usage: "[options] <run>",
    load: async () => (await import("./commands/episodes.ts")).episodesCommand,
  },
  export: {
    summary: "export metrics or episodes of a run, or a model or adapter (GGUF, PEFT)",
    usage: "[options] <run>",
    load: async () => (await import("./commands/export.ts")).exportCommand,
  },
  play: {
    summary: "watch one episode step by step",
    usage: "[options] [config]",
    load: async () => (await import("./commands/play.ts")).playCommand,
  },
  chat: {
    summary: "chat with a model in the terminal",
    usage: "[options] <model>",
    load: async () => (await import("./commands/chat.ts")).chatCommand,
  },
  serve: {
    summary: "serve a model over HTTP with OpenAI's API",
    usage: "[options] <model>",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
  engine: {
    summary: "train and sample for clients on other machines, over the Tinker API",
    usage: "[options] <model>",
    load: async () => (await import("./commands/engine.ts")).engineCommand,
  },
  retriever: {
    summary: "serve a search corpus to agents over HTTP",
    usage: "[options] <corpus>",
    load: async () => (await import("./commands/retriever.ts")).retrieverCommand,
  },
  models: {
    summary: "list downloaded models of the Hugging Face Hub, and which of them run here",
    usage: "[options]",
    load: async () => (await import("./commands/models.ts")).modelsCommand,
  },
  estimate: {
    summary: "estimate memory, time and disk use of training",
    usage: "[options] [config]",
    load: async () => (await import("./commands/estimate.ts")).estimateCommand,
  },
  algorithms: {
    summary: "list algorithms (GiGPO, its successors, baselines) and the options that select them",
    usage: "[options] [names...]",
    load: async () => (await import("./commands/algorithms.ts")).algorithmsCommand,
  },
  presets: {
    summary: "list presets: settings of the paper, of its code and of our benchmarks, with their sources",
    usage: "[options]",
    load: async () => (await import("./commands/presets.ts")).presetsCommand,
  },
  config: {
    summary: "explain configuration keys, or check a configuration file",
    usage: "[options] [config] [key]",
    load: async () => (await import("./commands/config.ts")).showConfigCommand,
  },
  recover: {
    summary: "finish a write that was interrupted on another machine",
    usage: "[options] <folder>",
    load: async () => (await import("./commands/recover.ts")).recoverCommand,
  },
  doctor: {
    summary: "check this machine and the engine",
    usage: "[options]",
    load: async () => (await import("./commands/doctor.ts")).doctorCommand,
  },
}

/** Adds every command to a program. A command gets its arguments, options and action just before it is parsed. */
export function addCommands(program: Command, onDefined: (command: Command) => void): Command {
  for (const [name, { summary }] of Object.entries(commands)) program.addCommand(new Command(name).summary(summary))
  program.configureHelp({
    subcommandTerm: (command) => `${command.name()} ${commands[command.name()]?.usage ?? command.usage()}`,
  })
  return program.hook("preSubcommand", async (_, command) => {
    if (await define(command)) onDefined(command)
  })
}

/** Description of an option in help texts, without a default that is an empty list. */
function optionDescription(option: Option): string {
  const isEmpty = Array.isArray(option.defaultValue) && option.defaultValue.length === 0
  const shown: Option = isEmpty ? Object.assign(Object.create(option), { defaultValue: undefined }) : option
  return new Help().optionDescription(shown)
}

/** Adds arguments, options and action to a command of `commands`. Returns false for an unknown name. */
export async function define(command: Command): Promise<boolean> {
  const entry = commands[command.name()]
  if (!entry) return false
  ;(await entry.load())(command)
  refuseRenamed(command)
  for (const one of [command, ...command.commands]) one.configureHelp({ optionDescription })
  return true
}

/** Makes the options of a command that were renamed errors that name the new option. */
export function refuseRenamed(command: Command): void {
  for (const [old, now] of Object.entries(renamed.flags[command.name()] ?? {})) {
    const option = new Option(old).hideHelp()
    command.addOption(option).on(`option:${option.name()}`, () => {
      throw new GigpoError("BAD_ARGUMENT", `${old} was renamed to ${now}.`)
    })
  }
}
