import { checkNewFile } from "../files/check-new-file.ts"
import type { PanelDefinition } from "../panel/definition.ts"
import { shortDigest } from "../panel/digest-text.ts"
import { type EvaluatePanelSetup, evaluatePanel } from "../panel/evaluate.ts"
import { writeEvaluation } from "../panel/evaluation-file.ts"
import { describePanel } from "../panel/find.ts"
import { openPanel, type Panel } from "../panel/panel.ts"
import type { PanelReport } from "../panel/report.ts"
import { GigpoError } from "../util/errors.ts"
import { visible } from "../util/visible.ts"
import type { Config } from "./config/config.ts"
import { describeModel } from "./evaluated-model.ts"
import { activity } from "./terminal/activity.ts"
import { formatShare } from "./terminal/format.ts"
import { table } from "./terminal/table.ts"

export interface PanelArguments {
  readonly panel?: string
  readonly repeats?: number
  readonly out?: string
  readonly overwrite?: boolean
}

/** Opens the panel that was asked for, for the environment of a configuration; undefined where none was. */
export async function openAskedPanel(
  { environment }: Config,
  { panel, repeats, out, overwrite = false }: PanelArguments,
  signal: AbortSignal,
): Promise<Panel | undefined> {
  if (panel === undefined) {
    const idle = repeats !== undefined ? "--repeats" : out !== undefined ? "--out" : undefined
    if (idle === undefined) return undefined
    throw new GigpoError("BAD_ARGUMENT", `${idle} belongs to a panel; name one: --panel sokoban/6x6@1, say.`)
  }
  if (out !== undefined) await checkNewFile(out, overwrite)
  const options = optionsFor(await describePanel(panel), environment)
  return await activity.during(`opening the panel ${panel}`, () => openPanel(panel, options, { signal }))
}

/** The options of a configured environment, which must be the panel's. */
export function optionsFor(
  panel: Pick<PanelDefinition, "name" | "environment">,
  environment: Config["environment"],
): Readonly<Record<string, unknown>> {
  const { name, ...options } = withoutAround(environment)
  if (name === panel.environment) return options
  throw new GigpoError(
    "BAD_CONFIG",
    `The panel ${panel.name} is of ${panel.environment}, and the configuration's environment is ${name ?? "a module of its own"}; ` +
      `choose another panel, or set environment.name=${panel.environment}.`,
  )
}

/** A panel is of an environment as it ships. */
export function withoutAround({ wrapper, ...rest }: Config["environment"]): Omit<Config["environment"], "wrapper"> {
  if (wrapper === undefined) return rest
  throw new GigpoError(
    "BAD_CONFIG",
    "A panel is of an environment with nothing around it: leave environment.wrapper out of the configuration.",
  )
}

/** Evaluates, and keeps the outcomes where a file was asked for. */
export async function evaluateOnPanel(
  setup: Omit<EvaluatePanelSetup, "model">,
  directory: string,
  out: string | undefined,
): Promise<PanelReport> {
  if (out === undefined) return (await evaluatePanel(setup)).report
  const { evaluation, report } = await evaluatePanel({ ...setup, model: await named(directory) })
  await writeEvaluation(out, evaluation)
  return report
}

const named = (directory: string) =>
  activity.during(`the digest of the weights of ${directory}`, () => describeModel(directory))

/** What the panel set in place of the configuration. */
export function describeReplaced({ name, replaced }: Panel): string[] {
  if (replaced.length === 0) return []
  return [`${name} sets of the environment, in place of the configuration: ${replaced.join(", ")}.`]
}

/** What a report says beside the success of all. */
export function panelLines({ kinds, passAtK, repeats, digests }: PanelReport): string[] {
  const share = (value: number) => formatShare(value)
  const kindRows = kinds.map(({ kind, tasks, success, successInterval: [low, high] }) => [
    ...["", visible(kind), `${tasks} tasks`, share(success)],
    `(95 %: ${share(low)} to ${share(high)})`,
  ])
  const passes = passAtK.flatMap((value, index) =>
    isShown(index + 1, repeats) ? [`${index + 1}: ${share(value)}`] : [],
  )
  return [
    ...table(kindRows, [2, 3]),
    ...(repeats > 1 ? [`  pass@k  ${passes.join(", ")}`] : []),
    `  digest ${shortDigest(digests.panel)}  (world ${shortDigest(digests.world)}, prompt ${shortDigest(digests.prompt)})`,
  ]
}

/** Powers of two, and the last. */
function isShown(k: number, repeats: number): boolean {
  return Number.isInteger(Math.log2(k)) || k === repeats
}
