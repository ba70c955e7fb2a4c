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

/** Opens the requested panel with the options of the configured environment. Undefined if none was requested. */
export async function openPanelFor(
  { environment }: Config,
  { panel, repeats, out, overwrite = false }: PanelArguments,
  signal: AbortSignal,
): Promise<Panel | undefined> {
  if (panel === undefined) {
    const idle = repeats !== undefined ? "--repeats" : out !== undefined ? "--out" : undefined
    if (idle === undefined) return undefined
    throw new GigpoError("BAD_ARGUMENT", `${idle} needs a panel, e.g. --panel sokoban/6x6@1.`)
  }
  if (out !== undefined) await checkNewFile(out, overwrite)
  const options = optionsFor(await describePanel(panel), environment)
  return await activity.during(`opening the panel ${panel}`, () => openPanel(panel, options, { signal }))
}

/** Options of the configured environment. Throws `BAD_CONFIG` if the panel has another environment. */
export function optionsFor(
  panel: Pick<PanelDefinition, "name" | "environment">,
  environment: Config["environment"],
): Readonly<Record<string, unknown>> {
  const { name, ...options } = withoutAround(environment)
  if (name === panel.environment) return options
  throw new GigpoError(
    "BAD_CONFIG",
    `The panel ${panel.name} is for ${panel.environment}, but the configured environment is ${name ?? "a module"}; ` +
      `choose another panel, or set environment.name=${panel.environment}.`,
  )
}

/**
 * Environment configuration without `wrapper`. Throws `BAD_CONFIG` if one is set: panels use unwrapped environments.
 */
export function withoutAround({ wrapper, ...rest }: Config["environment"]): Omit<Config["environment"], "wrapper"> {
  if (wrapper === undefined) return rest
  throw new GigpoError(
    "BAD_CONFIG",
    "A panel uses its environment without a wrapper: remove environment.wrapper from the configuration.",
  )
}

/** Evaluates on a panel and writes the outcomes to `out`, if given. */
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

/** Lines about options of the environment that the panel overrides. */
export function describeReplaced({ name, replaced }: Panel): string[] {
  if (replaced.length === 0) return []
  return [`${name} overrides these options of the configured environment: ${replaced.join(", ")}.`]
}

/** Lines of a panel's report after the overall success rate. */
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

/** Whether pass@k is printed: powers of two and the last. */
function isShown(k: number, repeats: number): boolean {
  return Number.isInteger(Math.log2(k)) || k === repeats
}
