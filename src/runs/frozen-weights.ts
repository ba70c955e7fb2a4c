import type { FrozenWeights } from "../engine/engine.ts"
import { GigpoError } from "../util/errors.ts"
import type { RunConfig } from "./config.ts"

/** The run that goes on, or that is forked. */
export interface Origin {
  readonly directory: string
  readonly config: RunConfig
  readonly forked: boolean
}

const uses = [
  ["reference", "it begins with them, or its KL is to them"],
  ["base", "its adapter was trained beside them"],
  ["teacher", "it was distilled from them"],
] as const

/**
 * What config.json is to tell of the weights that a run depends on. Others than it began with are refused: its KL would silently be
 * to these, and an adapter would stand beside another model. A fork may choose another model's folder; those of the same folder must
 * be the same.
 *
 * @param now - undefined where the engine tells none; what was told before stays then.
 * @throws GigpoError `BAD_MODEL`
 */
export function goesOnWith(
  now: FrozenWeights | undefined,
  origin: Origin | undefined,
  onWarning: (message: string) => void,
): FrozenWeights | undefined {
  if (!origin) return now
  const before = frozenOf(origin.config)
  if (!now) return origin.forked ? undefined : before
  if (origin.forked && before?.directory !== now.directory) return now
  for (const [what, use] of uses)
    if (before?.[what] !== undefined && now[what] !== undefined && before[what] !== now[what])
      throw others(origin, now, what, use)
  if (!origin.forked && uses.some(([what]) => now[what] !== undefined && before?.[what] === undefined))
    onWarning(
      `The run in ${origin.directory} is of an older version and does not tell the weights that it depends on: that they are still ` +
        "those that it began with is taken for granted.",
    )
  return now
}

function frozenOf({ frozen }: RunConfig): FrozenWeights | undefined {
  return typeof frozen === "object" && frozen !== null ? frozen : undefined
}

function others(
  { directory, forked }: Origin,
  now: FrozenWeights,
  what: (typeof uses)[number][0],
  use: string,
): GigpoError {
  const from = now.directory === undefined ? "" : `, which is from ${now.directory},`
  const who = what === "teacher" ? "teacher" : `policy${from}`
  const way = forked ? "give the other model a folder of its own" : "start a new run in another folder"
  return new GigpoError(
    "BAD_MODEL",
    `The ${who} does not have the weights that the run in ${directory} began with (their SHA-256 is another), but ${use}. ` +
      `Put those weights back, or ${way}.`,
  )
}
