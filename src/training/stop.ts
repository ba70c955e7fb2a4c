import { integer, number } from "../options/field.ts"
import type { Resolved } from "../options/table.ts"
import { bestOf } from "../runs/best.ts"
import type { IterationReport } from "../runs/report.ts"

const otherwise = "never for that"

/** What ends a run before its last iteration. */
export const stopFields = {
  plateau: integer(
    undefined,
    "Stop after so many evaluations in a row of which none is better than the best before: success, then the mean return.",
    { min: 1, defaultText: otherwise },
  ),
  kl: number(
    undefined,
    "Stop after an iteration whose updates lead the policy further than that from what sampled, in nats a token (policy/kl).",
    { above: 0, defaultText: otherwise },
  ),
  seconds: number(
    undefined,
    "Stop after the iteration in which the run has taken so long, resumed runs in all (time/run).",
    {
      above: 0,
      defaultText: otherwise,
    },
  ),
}

/** Why a run with these reports ends with the last of them, as the end of a sentence; undefined where it goes on. */
export function stopReason(
  reports: readonly IterationReport[],
  {
    plateau = Number.POSITIVE_INFINITY,
    kl = Number.POSITIVE_INFINITY,
    seconds = Number.POSITIVE_INFINITY,
  }: Partial<Resolved<typeof stopFields>> = {},
): string | undefined {
  const { iteration = 0, metrics = {} } = reports.at(-1) ?? {}
  const [distance = 0, taken = 0] = [metrics["policy/kl"], metrics["time/run"]]
  if (distance > kl)
    return `policy/kl was ${Number(distance.toPrecision(3))} in iteration ${iteration}, above ${kl} (stop.kl)`
  if (taken >= seconds) return `it has taken ${Math.round(taken)} s, of ${seconds} s (stop.seconds)`
  const best = bestOf(reports)
  const since = reports.filter((report) => report.evaluation && report.iteration > (best?.iteration ?? 0)).length
  if (!best || since < plateau) return undefined
  const which = best.iteration === 0 ? "that before the first iteration" : `that after iteration ${best.iteration}`
  return `of ${since} evaluations none was better than ${which} (stop.plateau)`
}
