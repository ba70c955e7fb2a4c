import { existsSync } from "node:fs"
import { resolve } from "node:path"
import { parentOf, parseHubName } from "../../hub/names.ts"
import { isObject } from "../../options/read.ts"
import { leaves } from "../../runs/config.ts"
import { isLoopback } from "../../util/key-address.ts"
import { type SinkServer, sinkNames, sinks } from "../../view/sinks/sinks.ts"
import type { Config } from "./config.ts"
import type { ConfigDocument } from "./document.ts"
import { usedModules } from "./modules.ts"

/**
 * Action of a configuration beyond reading and computing: running code or a program, contacting a server, or writing to
 * a folder.
 */
export interface Reach {
  readonly kind: "module" | "program" | "server" | "folder"
  /** Description for a message, such as "load the module /theirs/env.mjs (environment)". */
  readonly text: string
  /** Whether the user gave all values that decide the action, on the command line or by an environment variable. */
  readonly given: boolean
}

/** Servers that receive a key, by the configuration key of their address. */
const keyed: Readonly<Record<string, SinkServer>> = {
  "training.rolloutHooks.url": { address: "GIGPO_JUDGE_URL", sent: ["GIGPO_JUDGE_KEY"] },
  "engine.url": { address: "TINKER_BASE_URL", sent: ["TINKER_API_KEY"] },
  ...Object.fromEntries(
    Object.entries(sinks).flatMap(([name, { server }]) => (server ? [[`${name}.url`, server]] : [])),
  ),
}

/**
 * Lists the actions of a configuration beyond reading and computing. Loads nothing.
 *
 * @param folder - base of relative module paths
 */
export function reachesOf(config: Partial<Config>, parsed: ConfigDocument, folder: string): Reach[] {
  return [
    ...modules(config, parsed, folder),
    ...programs(config, parsed),
    ...servers(config, parsed),
    ...downloads(config, parsed),
  ]
}

function modules(config: Partial<Config>, { document, isSet }: ConfigDocument, folder: string): Reach[] {
  return usedModules(config).map(({ path, part }) => {
    const module = resolve(folder, part.use)
    const given = isSet([...path, document.hasIn([...path, "use"]) ? "use" : "name"])
    return { kind: "module", text: `load the module ${quoted(module)} (${path.join(".")})`, given }
  })
}

function programs({ agent }: Partial<Config>, { isSet }: ConfigDocument): Reach[] {
  if (!agent || !("command" in agent)) return []
  const { command, directory, environment = "clean" } = agent as ProgramOptions
  const where = directory === undefined ? "" : ` in ${quoted(directory)}`
  const keys = environment === "inherit" ? "all your environment variables" : [...environment].join(", ")
  const gets = environment === "clean" || keys === "" ? "" : `, which would get ${quoted(keys)}`
  const decide = ["command", ...(where === "" ? [] : ["directory"]), ...(gets === "" ? [] : ["environment"])]
  const given = decide.every((key) => isSet(["agent", key]))
  return [
    { kind: "program", text: `start the program ${quoted(command.join(" "))}${where}${gets} (agent.command)`, given },
  ]
}

/** Options of a program agent that decide what is run and which variables are passed. */
interface ProgramOptions {
  readonly command: readonly string[]
  readonly directory?: string | undefined
  readonly environment?: "clean" | "inherit" | readonly string[]
}

/** Finds servers. Every address in these groups counts, since any option of an environment or a hook may hold one. */
function servers(config: Partial<Config>, { isSet }: ConfigDocument): Reach[] {
  const { environment, engine, training } = config
  const hooks = training?.rolloutHooks && { training: { rolloutHooks: training.rolloutHooks } }
  const trackers = Object.fromEntries(sinkNames.flatMap((name) => (config[name] ? [[name, config[name]]] : [])))
  const values = [...leaves({ environment, ...(engine && { engine }), ...trackers, ...hooks } as object)]
  return values.flatMap(([key, value]) =>
    addressesIn(value).map(
      (url): Reach => ({
        kind: "server",
        text: contact(key, url),
        given: isSet(key.split(".")) || belongsTo(keyed[key], url),
      }),
    ),
  )
}

/** Lists downloads of models by their names on the Hub. As in `resolveModel`, an existing path or its parent folder takes precedence. */
function downloads(config: Partial<Config>, { isSet }: ConfigDocument): Reach[] {
  return (["model", "teacher"] as const).flatMap((key) => {
    const name = parseHubName(config[key] ?? "")
    if (!name || existsSync(config[key]!) || (name.revision === undefined && existsSync(parentOf(name)))) return []
    const text = `download the model ${quoted(config[key]!)} from the Hugging Face Hub (${key})`
    return [{ kind: "server", text, given: isSet([key]) }]
  })
}

/** Whether the user's environment variable names the same server, so that the key is meant for it. */
function belongsTo(server: SinkServer | undefined, url: URL): boolean {
  const usual = process.env[server?.address ?? ""] ?? ""
  if (!URL.canParse(usual)) return false
  const [own, requested] = [new URL(usual), url].map(
    ({ origin, pathname }) => `${origin}${pathname.replace(/(?<!\/)\/*$/, "/")}`,
  )
  return requested!.startsWith(own!)
}

function contact(key: string, url: URL): string {
  const { protocol, host, pathname } = url
  const sent = (keyed[key]?.sent ?? []).filter((name) => process.env[name])
  const plain = protocol === "http:" && !isLoopback(url) ? ", unencrypted" : ""
  const what = sent.length === 0 ? "" : `, with the key in ${sent.join(" and ")}${plain}`
  return `contact ${quoted(`${protocol}//${host}${pathname}`)} (${quoted(key)})${what}`
}

/** Maximum characters of a text in a message. */
const longest = 300

/** Text of the configuration on one line, quoted if it could be mistaken for words of the message. */
export function quoted(text: string): string {
  const shown = text.length > longest ? `${text.slice(0, longest)}…` : text
  return /^[\w./:=,@%+~\- ]+…?$/.test(shown) ? shown : JSON.stringify(shown)
}

function addressesIn(value: unknown): URL[] {
  if (Array.isArray(value)) return value.flatMap(addressesIn)
  if (isObject(value)) return Object.values(value).flatMap(addressesIn)
  if (typeof value !== "string" || !URL.canParse(value)) return []
  const url = new URL(value)
  return /^(https?|wss?):$/.test(url.protocol) ? [url] : []
}
