import { join } from "node:path"
import { boolean, field, string } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { runFiles } from "../../runs/files.ts"
import { readReports } from "../../runs/metrics-log.ts"
import type { IterationReport } from "../../runs/report.ts"
import type { RunObserver, RunStart } from "../../training/observers.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkKeyAddress } from "../../util/key-address.ts"
import { scalarsOf } from "../data/scalars.ts"
import { isRefusedForGood, MlflowClient } from "./mlflow-client.ts"
import { type Metric, metricsOf, mostMetrics } from "./mlflow-names.ts"
import { MlflowRun, statusOf } from "./mlflow-run.ts"

export const mlflowFields = {
  url: field<string | undefined, "Address of the MLflow server.">(
    undefined,
    "Address of the MLflow server.",
    (value) => (isAddress(value) ? undefined : wrongAddress),
    { defaultText: "the environment variable MLFLOW_TRACKING_URI" },
  ),
  plainHttp: boolean(
    false,
    "Whether a token or password may be sent to another machine over http, which is not encrypted.",
  ),
  experiment: string("gigpo", "MLflow experiment of the run; created if it does not exist."),
  runName: string(undefined, "Name of the run in MLflow.", { defaultText: "the name of the run's folder" }),
}

/** Options of `mlflow`. */
export type MlflowOptions = OptionsOf<typeof mlflowFields>

const wrongAddress =
  "must be the http or https address of an MLflow server, without a name or password (MLFLOW_TRACKING_USERNAME and " +
  "MLFLOW_TRACKING_PASSWORD have these)"

/** Maximum number of metrics waiting for an unreachable server; the oldest are dropped first. */
const longestQueue = 100_000

/**
 * Observer that sends every report to an MLflow server: settings as parameters, each metric by its name, those of an evaluation as
 * "evaluation/…"; steps are iterations. A resumed run continues the same MLflow run. As for MLflow's own clients, MLFLOW_TRACKING_TOKEN, or
 * MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, authenticate. Reports that an unreachable server misses are sent once it is back.
 *
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function mlflow(options: MlflowOptions = {}): RunObserver {
  const { url = process.env.MLFLOW_TRACKING_URI, plainHttp, ...names } = readOptions("mlflow", options, mlflowFields)
  if (!isAddress(url))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `mlflow: url, or the environment variable MLFLOW_TRACKING_URI, ${wrongAddress}.`,
    )
  const authorization = authorizationOf(process.env)
  if (authorization !== undefined && !plainHttp)
    checkKeyAddress(new URL(url), "The token or password of MLflow", "set mlflow.plainHttp (in code: plainHttp: true)")
  const client = new MlflowClient({ url: url.replace(/(?<!\/)\/+$/, ""), authorization })
  return mlflowObserver(client, names)
}

/** Observer as made by `mlflow`, with a given client. */
export function mlflowObserver(
  client: MlflowClient,
  names: { readonly experiment: string; readonly runName?: string | undefined },
): RunObserver {
  let waiting: Metric[] = []
  let start: RunStart = { iteration: 0, iterations: 0 }
  let run: MlflowRun | undefined
  let last: IterationReport | undefined
  let sending: Promise<void> | undefined
  let failure: unknown

  const open = async (): Promise<MlflowRun> => {
    const opened = await MlflowRun.open(client, start, names)
    // Earlier reports of the run that the server missed, including those of other processes.
    const { directory } = start
    const logged = directory === undefined ? [] : await readReports(join(directory, runFiles.metrics))
    const [first] = waiting
    const missed = logged.filter(({ iteration }) => first === undefined || iteration < first.step)
    waiting = [...missed.flatMap(metricsIn), ...waiting]
    return opened
  }
  const send = async (): Promise<void> => {
    run ??= await open()
    await run.logParams()
    while (waiting.length > 0) {
      const batch = waiting.splice(0, mostMetrics)
      try {
        await run.log(batch)
      } catch (error) {
        if (!isRefusedForGood(error)) waiting = [...batch, ...waiting]
        throw error
      }
    }
  }
  /** Not awaited by `report`: a slow server must not delay the queue of reports. An error is thrown with the next report. */
  const sendSoon = (): void => {
    sending ??= send()
      .catch((error) => {
        failure = error
      })
      .finally(() => {
        sending = undefined
      })
  }
  const tell = (): void => {
    const failed = failure
    failure = undefined
    if (failed !== undefined) throw failed
  }
  return {
    name: "mlflow",
    start(started) {
      start = started
      ;[waiting, run, last, failure] = [[], undefined, undefined, undefined] // of a run before this one
      client.resume()
      sendSoon()
    },
    report(report) {
      last = report
      waiting = [...waiting, ...metricsIn(report)].slice(-longestQueue)
      sendSoon()
      tell()
    },
    async end(outcome) {
      client.hurry()
      await sending
      try {
        await send()
      } finally {
        await run?.end(last?.stopped === undefined ? statusOf(outcome, start.iterations) : "FINISHED")
      }
    },
  }
}

function metricsIn(report: IterationReport): Metric[] {
  const time = report.time === undefined ? Date.now() : Date.parse(report.time)
  return metricsOf(scalarsOf(report), time, report.iteration)
}

function isAddress(value: unknown): value is string {
  if (typeof value !== "string" || !URL.canParse(value)) return false
  const { protocol, username, password } = new URL(value)
  return /^https?:$/.test(protocol) && username === "" && password === ""
}

function authorizationOf(environment: NodeJS.ProcessEnv): string | undefined {
  const {
    MLFLOW_TRACKING_TOKEN: token,
    MLFLOW_TRACKING_USERNAME: name,
    MLFLOW_TRACKING_PASSWORD: password,
  } = environment
  // In MLflow's own order.
  if (name && password) return `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`
  return token ? `Bearer ${token}` : undefined
}
