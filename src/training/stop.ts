import { integer, number } from "../options/field.ts"
import type { ResolvedOf } from "../options/table.ts"
import { bestOf } from "../runs/best.ts"
import type { IterationReport } from "../runs/report.ts"

const otherwise = "off"

/** Options of early stopping. */
export const stopFields = {
  plateau: integer(
    undefined,
    "Stop after this number of evaluations in a row without a new best success rate; ties are broken by mean return.",
    { min: 1, defaultText: otherwise },
  ),
  kl: number(
    undefined,
    "Stop after an iteration whose KL between old and updated policy exceeds this, in nats per token (policy/kl).",
    { above: 0, defaultText: otherwise },
  ),
  seconds: number(
    undefined,
    "Stop after the iteration in which the duration of the run, across resumptions, reaches this many seconds (time/run).",
    {
      above: 0,
      defaultText: otherwise,
    },
  ),
}

/** Returns the reason why a run ends with the last of these reports, as the end of a sentence; undefined if the run continues. */
export function stopReason(
  reports: readonly IterationReport[],
  {
    plateau = Number.POSITIVE_INFINITY,
    kl = Number.POSITIVE_INFINITY,
    seconds = Number.POSITIVE_INFINITY,
  }: Partial<ResolvedOf<typeof stopFields>> = {},
): string | undefined {
  const { iteration = 0, metrics = {} } = reports.at(-1) ?? {}
  const [distance = 0, taken = 0] = [metrics["policy/kl"], metrics["time/run"]]
  if (distance > kl)
    return `policy/kl was ${Number(distance.toPrecision(3))} in iteration ${iteration}, above ${kl} (stop.kl)`
  if (taken >= seconds) return `the run has taken ${Math.round(taken)} s, with a limit of ${seconds} s (stop.seconds)`
  const best = bestOf(reports)
  const since = reports.filter((report) => report.evaluation && report.iteration > (best?.iteration ?? 0)).length
  if (!best || since < plateau) return undefined
  const which =
    best.iteration === 0 ? "the one before the first iteration" : `the one after iteration ${best.iteration}`
  return `none of the last ${since} evaluations was better than ${which} (stop.plateau)`
}
