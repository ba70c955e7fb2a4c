import { accessSync, constants } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { type AgentResult, readEnd } from "../endpoint/posted.ts"
import { stringify } from "../json/text.ts"
import { native } from "../native/native.ts"
import { display } from "../options/display.ts"
import { list, number, oneOf, required, string } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { commandWithoutSecrets } from "../secrets/texts.ts"
import { GigpoError } from "../util/errors.ts"
import { visible } from "../util/visible.ts"
import type { Agent, AgentContext } from "./agent.ts"
import { type GroupEnd, runGroup, secretDescriptor } from "./process-group.ts"
import { checkEnvironment, environmentField, passedOn } from "./program-environment.ts"

const words = list([], string(undefined, ""), "Program that plays an episode, with arguments: [node, agent.mjs].")

export const processFields = {
  command: required({
    ...words,
    validate: (value: unknown) =>
      Array.isArray(value) && value.length === 0 ? "must name a program" : words.validate(value),
  }),
  directory: string(undefined, "Working directory of the program.", { defaultText: "the working directory" }),
  environment: environmentField,
  control: oneOf(
    "none",
    ["none", "descriptor", "environment"],
    "How the program receives the control key for POST /gigpo/step and /gigpo/reward: none, descriptor (to be read once, before any tool " +
      "runs, from " +
      "the descriptor GIGPO_CONTROL_FD), or environment (GIGPO_CONTROL_KEY, which every tool it starts can read).",
  ),
  grace: number(5, "Seconds between SIGTERM and SIGKILL when a program is stopped.", { min: 0, max: 600 }),
}

/** Options of `processAgent`. */
export type ProcessAgentOptions = OptionsOf<typeof processFields>

/** Maximum bytes of a task's JSON in the environment variable: Linux allows 128 KiB per variable. */
const longestVariable = 100_000

/**
 * Returns an agent that runs a program, in any language, once per episode. The program calls the model as an OpenAI
 * client. Its environment contains, besides the variables of the option `environment`:
 *
 * - `OPENAI_BASE_URL`, `OPENAI_API_KEY` (valid for the episode) and `GIGPO_MODEL`, the name of the model;
 * - `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY` and `ANTHROPIC_MODEL`, the same for Anthropic's clients, unless the
 *   program is passed variables that begin with `ANTHROPIC_`;
 * - `GIGPO_TEMPERATURE`, the sampling temperature of the run, the only one that requests may set;
 * - `GIGPO_TASK`, the task as JSON, which is also on standard input; a task of more than 100,000 bytes is only there;
 * - `GIGPO_EPISODE`, such as "3/1": index of the task in its iteration and of the episode in its group;
 * - `GIGPO_SEED`, a random seed.
 *
 * The last line printed before the program exits is its reward: a number, or a JSON object such as
 * `{"reward": 1, "success": true, "metrics": {}}`, or `null` if the episode cannot be scored.
 *
 * With the option `control` the program also has a key for two more requests, for which the model key is rejected.
 * `POST {OPENAI_BASE_URL}/gigpo/reward` takes the same as the last line, any number of times: each reward is added to the
 * last completion so far, and the last line is then ignored. `POST …/gigpo/step` with `{"anchor": "…"}` sets the anchor
 * state of the following completions.
 *
 * An exit code other than 0 fails the episode. When the episode is no longer needed (`rollout.episodeTimeout`), the
 * program and all processes it started get SIGTERM, then SIGKILL; so do processes left behind.
 *
 * @throws GigpoError `BAD_ARGUMENT` for wrong options, or if the program does not exist
 */
export function processAgent(options: ProcessAgentOptions): Agent {
  const { command, directory = ".", grace, control, ...own } = readOptions("processAgent", options, processFields)
  const [program, ...args] = command as readonly [string, ...string[]]
  checkProgram(program, directory)
  checkEnvironment(own.environment)
  const name = visible(commandWithoutSecrets([program, ...args]))
  return async (task, context) => {
    const input = asJson(task)
    const { signal, controlKey } = context
    const passed = passedOn(own.environment)
    const environment = {
      ...(Object.keys(passed).some((name) => name.startsWith("ANTHROPIC_")) ? {} : anthropicVariables(context)),
      ...passed,
      ...environmentOf(context, input),
      ...(control === "environment" && { GIGPO_CONTROL_KEY: controlKey }),
      ...(control === "descriptor" && { GIGPO_CONTROL_FD: String(secretDescriptor) }),
    }
    // Variables withheld from the program must not be readable in /proc either.
    if (own.environment !== "inherit") native().hideProcess()
    const secret = control === "descriptor" ? `${controlKey}\n` : undefined
    const ended = await runGroup(program, args, { directory, environment, input, secret, grace, signal })
    checkEnd(name, ended)
    const posted = context.postedResult()
    return posted === undefined ? readReward(name, ended) : posted
  }
}

function environmentOf(
  { openai, model, temperature, index, member, random }: AgentContext,
  task: string,
): NodeJS.ProcessEnv {
  const { hostname } = new URL(openai.baseURL)
  // A proxy cannot reach an address of this machine.
  const direct = [process.env.NO_PROXY ?? process.env.no_proxy, hostname].filter(Boolean).join(",")
  return {
    OPENAI_BASE_URL: openai.baseURL,
    OPENAI_API_KEY: openai.apiKey,
    GIGPO_MODEL: model,
    GIGPO_TEMPERATURE: String(temperature),
    GIGPO_TASK: Buffer.byteLength(task) <= longestVariable ? task : undefined,
    GIGPO_EPISODE: `${index}/${member}`,
    GIGPO_SEED: String(random.derive("seed").below(2 ** 31)),
    NO_PROXY: direct,
    no_proxy: direct,
  }
}

/** Variables of Anthropic's clients. A program that has its own uses Claude for something else. */
function anthropicVariables({ anthropic, model }: AgentContext): NodeJS.ProcessEnv {
  return {
    ANTHROPIC_BASE_URL: anthropic.baseURL,
    ANTHROPIC_API_KEY: anthropic.apiKey,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model, // of small tasks beside the conversation
  }
}

function checkEnd(name: string, { code, signal, stderr }: GroupEnd): void {
  if (code === 0) return
  const lines = stderr.lines(30)
  // Python traces end with the error, others begin with it.
  const error = lines.findLastIndex((line) => /^\s*(\w*(Error|Exception)\b|error:)/.test(line))
  const last = error >= 0 ? lines.slice(error, error + 3) : lines.slice(-5)
  const shown = last.map((line) => visible(line.trim()).slice(0, 200))
  throw new GigpoError(
    "ENVIRONMENT_FAILED",
    `${name} ended ${signal ? `by ${signal}` : `with code ${code}`}${shown.length > 0 ? `: ${shown.join(" | ")}` : ""}`,
  )
}

function readReward(name: string, { stdout }: GroupEnd): AgentResult | null {
  const line = stdout.lastLine
  const wanted =
    'print a number, {"reward": …} or null as the last line, or POST it to $OPENAI_BASE_URL/gigpo/reward before (see the option control)'
  if (line === undefined) throw wrong(`the last line that ${name} printed is too long to be a reward; ${wanted}.`)
  if (line === "") throw wrong(`${name} reported no reward; ${wanted}.`)
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw wrong(`the last line that ${name} printed is not a reward: ${visible(display(line))}; ${wanted}.`)
  }
  return readEnd(value)
}

function asJson(task: unknown): string {
  try {
    const json = stringify(task)
    if (json !== undefined) return json
  } catch {}
  throw wrong(`A program receives its task as JSON, but this task cannot be serialized: ${display(task)}.`)
}

function checkProgram(program: string, directory: string): void {
  const folders = program.includes("/") ? [resolve(directory)] : (process.env.PATH ?? "").split(delimiter)
  const isThere = (path: string) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  }
  if (folders.some((folder) => isThere(program.startsWith("/") ? program : join(folder, program)))) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `There is no executable program ${visible(program)}: give a program on the PATH, or the path of an executable file.`,
  )
}

function wrong(sentence: string): GigpoError {
  return new GigpoError("BAD_ENVIRONMENT", sentence)
}
