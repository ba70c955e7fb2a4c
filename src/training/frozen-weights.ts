import type { FrozenWeights } from "../engine/engine.ts"
import { GigpoError } from "../errors.ts"
import type { RunConfig } from "./run-config.ts"

/** What a run that goes on, or that is forked, was begun with. */
export interface Origin {
  readonly directory: string
  readonly config: RunConfig
  readonly forked: boolean
}

/**
 * Refuses to go on with other frozen weights than a run began with: its KL would silently be to others, and an adapter would stand
 * beside another model. A fork may choose another model's folder; of the same folder the weights must be the same.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export function checkFrozen({ directory, config, forked }: Origin, now: FrozenWeights): void {
  const before = frozenOf(config)
  if (forked && before?.directory !== now.directory) return
  for (const [what, use] of uses) {
    if (before?.[what] === undefined || now[what] === undefined || before[what] === now[what]) continue
    const from = now.directory === undefined ? "" : `, which is from ${now.directory},`
    const way = forked ? "give the other model a folder of its own" : "start a new run in another folder"
    throw new GigpoError(
      "BAD_MODEL",
      `The policy${from} does not have the weights that the run in ${directory} began with (their SHA-256 is another), but ${use}. ` +
        `Put those weights back, or ${way}.`,
    )
  }
}

/** Whether a run that depends on frozen weights does not say which, being older than the digests. */
export function untold({ config }: Origin, now: FrozenWeights): boolean {
  const before = frozenOf(config)
  return uses.some(([what]) => now[what] !== undefined && before?.[what] === undefined)
}

const uses = [
  ["reference", "its KL is to them"],
  ["base", "its adapter was trained beside them"],
] as const

function frozenOf({ frozen }: RunConfig): FrozenWeights | undefined {
  return typeof frozen === "object" && frozen !== null ? frozen : undefined
}
