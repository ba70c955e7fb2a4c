import { accessSync, constants } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { type AgentEnd, readEnd } from "../endpoint/posted.ts"
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

const words = list(
  [],
  string(undefined, ""),
  "The program that plays an episode, and its arguments: [node, agent.mjs].",
)

export const processFields = {
  command: required({
    ...words,
    validate: (value: unknown) =>
      Array.isArray(value) && value.length === 0 ? "must name a program" : words.validate(value),
  }),
  directory: string(undefined, "Where the program runs.", { defaultText: "the working directory" }),
  environment: environmentField,
  control: oneOf(
    "none",
    ["none", "descriptor", "environment"],
    "How the program gets the key for POST /gigpo/step and /gigpo/reward: none, descriptor (to be read once, before any tool runs, from " +
      "the descriptor GIGPO_CONTROL_FD), or environment (GIGPO_CONTROL_KEY, which every tool that it starts can read, too).",
  ),
  grace: number(5, "Seconds from SIGTERM to SIGKILL, for a program that has to end.", { min: 0, max: 600 }),
}

/** Options of `processAgent`. */
export type ProcessAgentOptions = OptionsOf<typeof processFields>

/** Bytes of a task's JSON up to which it also stands in the environment: Linux takes 128 KiB a variable. */
const longestVariable = 100_000

/**
 * An agent that is a program, in any language: it is started once an episode and calls the model as any client of OpenAI's. Its
 * environment holds, besides the variables that the option `environment` passes on,
 *
 * - `OPENAI_BASE_URL`, `OPENAI_API_KEY` (its episode's own) and `GIGPO_MODEL`, the name to ask for;
 * - `GIGPO_TASK`, its task as JSON, which is its standard input, too: a task of more than 100,000 bytes stands there alone;
 * - `GIGPO_EPISODE`, "3/1": the task's number in its iteration and the episode's in its group; `GIGPO_SEED`, a number for what it draws.
 *
 * The last line printed before the program exits is its reward: a number, `{"reward": 1, "success": true, "metrics": {}}`, or `null`
 * where it cannot be scored.
 *
 * With the option `control` it also has a key of its own for two more requests, which the model's key is refused for.
 * `POST {OPENAI_BASE_URL}/gigpo/reward` takes the same as the last line, any number of times: each is added to the last reply so far,
 * and what is printed is then not read. `POST …/gigpo/step` with `{"anchor": "…"}` names the state in which the next replies are given.
 *
 * An exit code other than 0 costs the episode. When it is no longer wanted (`rollout.episodeTimeout`), the program and whatever it has
 * started get SIGTERM, then SIGKILL; so does what it leaves behind.
 *
 * @throws GigpoError `BAD_ARGUMENT` for wrong options, or where there is no such program
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
    const environment = {
      ...passedOn(own.environment),
      ...environmentOf(context, input),
      ...(control === "environment" && { GIGPO_CONTROL_KEY: controlKey }),
      ...(control === "descriptor" && { GIGPO_CONTROL_FD: String(secretDescriptor) }),
    }
    // What the program does not get it must not find in /proc either.
    if (own.environment !== "inherit") native().hideProcess()
    const secret = control === "descriptor" ? `${controlKey}\n` : undefined
    const ended = await runGroup(program, args, { directory, environment, input, secret, grace, signal })
    checkEnd(name, ended)
    const posted = context.posted()
    return posted === undefined ? readReward(name, ended) : posted
  }
}

function environmentOf({ openai, model, index, member, random }: AgentContext, task: string): NodeJS.ProcessEnv {
  const { hostname } = new URL(openai.baseURL)
  // Clients that heed a proxy would ask it for an address that only this machine knows.
  const direct = [process.env.NO_PROXY ?? process.env.no_proxy, hostname].filter(Boolean).join(",")
  return {
    OPENAI_BASE_URL: openai.baseURL,
    OPENAI_API_KEY: openai.apiKey,
    GIGPO_MODEL: model,
    GIGPO_TASK: Buffer.byteLength(task) <= longestVariable ? task : undefined,
    GIGPO_EPISODE: `${index}/${member}`,
    GIGPO_SEED: String(random.fork("seed").below(2 ** 31)),
    NO_PROXY: direct,
    no_proxy: direct,
  }
}

function checkEnd(name: string, { code, signal, stderr }: GroupEnd): void {
  if (code === 0) return
  const lines = stderr.lines(30)
  // Traces end with where, and begin with what.
  const error = lines.findLastIndex((line) => /^\s*(\w*(Error|Exception)\b|error:)/.test(line))
  const last = error >= 0 ? lines.slice(error, error + 3) : lines.slice(-5)
  const said = last.map((line) => visible(line.trim()).slice(0, 200))
  throw new GigpoError(
    "ENVIRONMENT_FAILED",
    `${name} ended ${signal ? `by ${signal}` : `with code ${code}`}${said.length > 0 ? `: ${said.join(" | ")}` : ""}`,
  )
}

function readReward(name: string, { stdout }: GroupEnd): AgentEnd | null {
  const line = stdout.lastLine
  const wanted =
    'end with a line that is a number, {"reward": …} or null, or POST it to $OPENAI_BASE_URL/gigpo/reward before (see the option control)'
  if (line === undefined) throw wrong(`the last line that ${name} printed is too long to be a reward; ${wanted}.`)
  if (line === "") throw wrong(`${name} has told no reward; ${wanted}.`)
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw wrong(`the last line that ${name} printed is no reward: ${visible(display(line))}; ${wanted}.`)
  }
  return readEnd(value)
}

function asJson(task: unknown): string {
  try {
    const json = stringify(task)
    if (json !== undefined) return json
  } catch {}
  throw wrong(`A program gets its task as JSON, which this one cannot be written as: ${display(task)}.`)
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
    `There is no program ${visible(program)} that can be run: give one of the PATH, or the path of a file that is executable.`,
  )
}

function wrong(sentence: string): GigpoError {
  return new GigpoError("BAD_ENVIRONMENT", sentence)
}
