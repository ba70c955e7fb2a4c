import type { FrozenWeights } from "../engine/engine.ts"
import { GigpoError } from "../util/errors.ts"
import type { RunConfig } from "./config.ts"

/** Run that is resumed or forked. */
export interface Origin {
  readonly directory: string
  readonly config: RunConfig
  readonly forked: boolean
}

const uses = [
  ["reference", "the run starts from them, or its KL penalty refers to them"],
  ["base", "its adapter was trained on them"],
  ["teacher", "the run was distilled from them"],
] as const

/**
 * Returns the digests of the weights that a run depends on, for config.json. A resumed run must have the same weights: otherwise its KL
 * penalty would refer to other weights, and an adapter would be used with another model. A fork may use the folder of another model; weights
 * of the same folder must be the same.
 *
 * @param now - digests of the engine; undefined if the engine has none. Those of the run are kept then.
 * @throws GigpoError `BAD_MODEL` for other weights.
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
      `The run in ${origin.directory} is of an older version without digests of the weights that it depends on, so gigpo cannot check ` +
        "whether these are still the weights that it started with.",
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
  const way = forked ? "use another folder for the other model" : "start a new run in another folder"
  return new GigpoError(
    "BAD_MODEL",
    `The ${who} does not have the weights that the run in ${directory} started with (their SHA-256 differs), but ${use}. ` +
      `Restore those weights, or ${way}.`,
  )
}
