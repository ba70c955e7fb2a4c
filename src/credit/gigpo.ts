import { checkArguments } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { atOnce, Pace, type Pieces } from "../util/pace.ts"
import { Random } from "../util/random.ts"
import { collect, scatter } from "./batch.ts"
import { defineEstimator } from "./define-estimator.ts"
import {
  gigpoMetrics,
  summarizeAdvantages,
  summarizeCompared,
  summarizeLevels,
  summarizeStepGroups,
} from "./diagnostics.ts"
import type { Batch, Estimator, EstimatorContext, StepCredit } from "./estimator.ts"
import { episodeLevel, normalizers } from "./grpo.ts"
import { normalizer } from "./normalizer.ts"
import { gigpoFields, outsideRuns, type SettingsNow, settle } from "./options.ts"
import { groupsOf } from "./outcomes.ts"
import {
  acrossTasks,
  anchorLevels,
  discountedReturn,
  type GigpoParts,
  type StepLevel,
  similarityLevels,
} from "./parts.ts"
import { paidBatch, payPenalties } from "./penalties.ts"
import { gigpoPresets } from "./presets.ts"
import { countConstant, groupStatistics } from "./statistics.ts"
import type { GigpoOptions, GigpoResult, GigpoStep } from "./types.ts"
import { whiten } from "./whiten.ts"

type Parts = { readonly [name in keyof GigpoParts]?: GigpoParts[name] | undefined }

/** Options that each part replaces. */
const replaced = [
  ["signal", "gamma"],
  ["levels", "similarity"],
  ["levels", "stepScope"],
  ["combine", "omega"],
] as const satisfies readonly (readonly [keyof GigpoParts, keyof GigpoOptions])[]

/**
 * Group-in-group policy optimization (GiGPO, arXiv 2505.10978): advantages of steps from two comparisons. Episodes are compared with the
 * other episodes of their task. Steps are compared with the other steps of the task that were taken in the same anchor state. Neither a
 * critic nor additional rollouts are needed. The cost is linear in the number of steps. Each part can be replaced (`GigpoParts`).
 *
 * The details contain, [steps] each: `episodeAdvantages`, `stepAdvantages` (before omega), `returns` (the step signal) and `stepGroups`
 * (of the first level).
 *
 * @throws BAD_ARGUMENT for an invalid option, or an option together with the part that replaces it
 */
export const gigpo = defineEstimator({
  name: "gigpo",
  fields: gigpoFields,
  about: {
    system: "GiGPO",
    origin: "gigpo",
    changes: ["credit", "step-groups"],
    equation: "A = (R - mean R) / F + ω (R_t - mean R_t among the task's steps from the same state) / F",
    source: "arXiv 2505.10978",
    status: "exact",
    otherFiles: ["src/credit/similarity.ts"],
    note:
      "Definition of the paper. The three entries below are the variants of published implementations. `similarity` groups similar states " +
      "instead of equal ones, by the ratio of CPython's difflib, with its autojunk.",
  },
  variants: {
    "gigpo-verl-agent": {
      defaults: gigpoPresets.verlAgent,
      about: {
        system: "GiGPO in verl-agent",
        origin: "gigpo",
        changes: ["credit", "step-groups"],
        equation:
          "as GiGPO, with the mean of R over steps, the penalty on the invalid step only, and the raw return of a task's only episode",
        source: "langfengQ/verl-agent",
        status: "exact",
        note: "Rollouts and environments of this package follow verl-agent. Prompts have the same parts in other words.",
      },
    },
    "gigpo-roll": {
      defaults: gigpoPresets.roll,
      about: {
        system: "GiGPO in ROLL",
        origin: "gigpo",
        changes: ["credit", "step-groups"],
        equation: "as GiGPO, with mean R over steps, comparing equal states of all tasks; whitened",
        source: "alibaba/ROLL",
        status: "exact",
      },
    },
    "gigpo-trinity": {
      defaults: gigpoPresets.trinity,
      about: {
        system: "GiGPO in Trinity-RFT",
        origin: "gigpo",
        changes: ["credit", "step-groups"],
        equation: "as GiGPO, with γ = 1, comparing equal states of all tasks",
        source: "modelscope/Trinity-RFT",
        status: "exact",
      },
    },
  },
  make(given: GigpoOptions & Parts = {}): Estimator<StepCredit> {
    checkArguments("gigpo", given)
    const { episode, signal, levels, normalize, combine, ...options } = given
    const parts = { episode, signal, levels, normalize, combine }
    for (const [part, option] of replaced) {
      if (parts[part] !== undefined && options[option] !== undefined)
        throw new GigpoError(
          "BAD_ARGUMENT",
          `gigpo has the part ${part}, which replaces ${option}: leave one of them out.`,
        )
    }
    for (const [name, part] of Object.entries(parts)) {
      if (part !== undefined && typeof part !== "function")
        throw new GigpoError("BAD_ARGUMENT", `The part ${name} of gigpo is of type ${typeof part}; give a function.`)
    }
    const atFirst = settle("gigpo", options, gigpoFields, outsideRuns)
    completeParts(parts, atFirst)
    // With step advantages, a single episode that visits a state repeatedly is still compared with itself.
    const isWithoutSteps = options.omega === 0 && !combine
    return {
      name: "gigpo",
      groups: parts.episode ? undefined : groupsOf(atFirst) && (isWithoutSteps ? "needed" : "wanted"),
      async estimate(batch, context) {
        const settings = settle("gigpo", options, gigpoFields, context.progress)
        const pieces = gigpoInPieces(batch, parts, settings, context)
        const { diagnostics, advantages, ...details } = await new Pace(context.signal).through(pieces)
        return { advantages, details, metrics: gigpoMetrics(diagnostics) }
      },
    }
  },
})

/**
 * Returns the advantages of `gigpo` for plain steps, with diagnostics. Scheduled options have their initial values.
 *
 * @param steps [steps], in time order within an episode; an empty list gives an empty result
 * @throws NON_FINITE for a reward that is not finite, BAD_ARGUMENT for an invalid step or option
 */
export function gigpoAdvantages(steps: readonly GigpoStep[], options: GigpoOptions = {}): GigpoResult {
  const settings = settle("gigpo", options, gigpoFields, outsideRuns)
  const { batch, index } = collect(steps)
  const context = { progress: outsideRuns, random: new Random(0) }
  const { diagnostics, ...found } = atOnce(gigpoInPieces(batch, {}, settings, context))
  const perStep = (values: Float64Array) => scatter(values, index, new Float64Array(steps.length))
  return {
    advantages: perStep(found.advantages),
    episodeAdvantages: perStep(found.episodeAdvantages),
    stepAdvantages: perStep(found.stepAdvantages),
    returns: perStep(found.returns),
    stepGroups: scatter(found.stepGroups, index, new Int32Array(steps.length).fill(-1)),
    diagnostics,
  }
}

function completeParts(given: Parts, { gamma, similarity: alike, stepScope, normalization, epsilon }: SettingsNow) {
  const similarity = typeof alike === "number" ? { threshold: alike } : alike
  const levels = similarity === undefined ? anchorLevels : similarityLevels(similarity)
  return {
    signal: given.signal ?? discountedReturn(gamma),
    levels: given.levels ?? (stepScope === "batch" ? acrossTasks(levels) : levels),
    normalize: given.normalize ?? normalizer({ ...normalizers[normalization], epsilon }),
  }
}

/** Computes the advantages, with pauses between the parts: each is one pass over the steps, and may be given as a function. */
export function* gigpoInPieces(
  plain: Batch,
  given: Parts,
  settings: SettingsNow,
  context: EstimatorContext,
): Pieces<GigpoResult> {
  const { signal, levels, normalize } = completeParts(given, settings)
  const paid = payPenalties(plain, settings)
  const batch = paidBatch(plain, paid)
  yield

  // Eq. 3: A^E(τ_i) = (R(τ_i) - mean_j R(τ_j)) / F_norm({R(τ_j)}), over the episodes τ_j of one task
  const outcome = episodeLevel(plain, settings, paid)
  yield
  const episodeAdvantages = given.episode?.(batch, context) ?? outcome.advantages
  yield

  // Eq. 4, 6: G^S(s) = {(a_t^i, R_t^i) | s_t^i = s}, all occurrences of an anchor state s among the steps of one task
  const stepLevels = levels(batch, context)
  const stepGroups = stepLevels[0]?.ids ?? new Int32Array(plain.length).fill(-1)
  yield

  // Eq. 5: R_t^i = Σ_{k≥t} γ^(k-t) r_k^i
  const returns = signal(batch, context)
  yield
  const scores = paid.score(returns)

  // Eq. 7: A^S(a_t^i) = (R_t^i - mean G^S) / F_norm(G^S); 0 for a state that was met once
  const compared: Float64Array[] = []
  for (const { ids, values = scores } of stepLevels) {
    yield
    compared.push(normalize(values, ids))
  }
  yield

  // Eq. 8: A(a_t^i) = A^E(τ_i) + ω A^S(a_t^i)
  const stepSum = sumLevels(compared, stepLevels, plain.length)
  const own = given.combine?.(episodeAdvantages, compared, batch, context)
  const [omega, stepAdvantages] = own
    ? [1, own.map((value, row) => value - episodeAdvantages[row]!)]
    : [settings.omega, stepSum]

  yield
  const statistics = groupStatistics(stepLevels[0]?.values ?? scores, stepGroups)
  yield
  const joint = own ?? episodeAdvantages.map((value, row) => value + omega * stepAdvantages[row]!)
  const advantages = settings.whiten ? whiten(joint, plain.lengths) : joint

  yield
  const spread = { ...summarizeAdvantages(advantages), ...summarizeLevels(episodeAdvantages, stepAdvantages, omega) }
  yield
  const sizes = summarizeStepGroups(stepGroups)
  yield
  return {
    advantages,
    episodeAdvantages,
    stepAdvantages,
    returns,
    stepGroups,
    diagnostics: {
      ...spread,
      ...sizes,
      episodeGroups: outcome.episodeGroups,
      constantEpisodeGroups: outcome.constantEpisodeGroups,
      constantStepGroups: countConstant(statistics),
      ...summarizeCompared(stepGroups, statistics, plain.episode),
    },
  }
}

/** Weighted sum of the levels, Σ weight · level, [steps]. */
function sumLevels(compared: readonly Float64Array[], levels: readonly StepLevel[], steps: number): Float64Array {
  if (compared.length === 1 && levels[0]!.weight === undefined) return compared[0]!
  const sum = new Float64Array(steps)
  for (const [level, values] of compared.entries()) {
    const { weight = 1 } = levels[level]!
    for (const [row, value] of values.entries()) sum[row]! += weight * value
  }
  return sum
}
