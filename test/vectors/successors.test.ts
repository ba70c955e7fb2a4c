import { existsSync } from "node:fs"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { compareFile } from "./run.ts"
import { successorTopics } from "./successors.ts"

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-successors-"))
})
afterAll(() => rm(folder, { recursive: true }))

const compareVectors = async (vectors: object) => {
  const path = join(folder, "vectors.json")
  await writeFile(path, JSON.stringify(vectors))
  return compareFile(path)
}

const step = (traj: string, turn: number, state: string, reward: number) => ({ prompt: "p", traj, turn, state, reward })
/** Two episodes from A; the first ends well. Undiscounted returns 4 4, 0 0. */
const fixture = {
  gamma: 1,
  steps: [step("t", 0, "A", 0), step("t", 1, "B", 4), step("u", 0, "A", 0), step("u", 1, "B", 0)],
}
const uses = "fixture"

/** Worked out by hand. */
const byHand: Record<string, object> = {
  gigpo: {
    uses,
    params: { omega: 0.5, gamma: 1, eps: 0 },
    expected: { "mean_norm/per_traj": { A_E: [2, 2, -2, -2], A_S: [2, 2, -2, -2], A: [3, 3, -3, -3] } },
  },
  outcome_estimators: {
    inputs: { uid: ["a", "a", "b", "b"], R: [1, 0, 1, 1], length: [3, 1, 1, 1] },
    expected: {
      rloo: [1, -1, 0, 0],
      opo: [0.25, -0.75, 0, 0],
      gpg: [(0.5 * 4) / 3, (-0.5 * 4) / 3, 0, 0],
      rpp_baseline_unwhitened: [0.5, -0.5, 0, 0],
      dapo_dynamic_keep: { a: true, b: false },
    },
  },
  holder_p_schedule: {
    params: { p_min: 0, p_max: 2, steps: 4, power: 2 },
    inputs: { step: [0, 2, 4, 9] },
    expected: { linear: [0, 1, 2, 2], quad_dec: [2, 1.5, 0, 0] },
  },
  tcod_schedule: {
    params: { k_start: 2, eta: 5, T_max: 4, L: 3 },
    inputs: { step: [0, 4, 5, 10, 99] },
    expected: { k: [2, 2, 3, 4, 4], replay: [1, 1, 0, 0, 0] },
  },
  dapo_overlong: { params: { L_max: 10, cache: 4 }, inputs: { length: [6, 8, 11] }, expected: [0, -0.5, -1] },
  step_gae: {
    uses: "fixture rewards",
    params: { gamma: 0.5, lam: 0 },
    inputs: { values: [1, 2, 0, 2] },
    expected: { raw: [0, 2, 1, -2], returns: [1, 4, 1, 0] },
  },
  // Histories of one state and of two: weights 2 and 3, or 1 and 2. At B both say the same.
  hgpo: {
    uses,
    params: { eps: 0 },
    expected: {
      "recipe/mean_norm/K=1/alpha=1": [2, 2, -2, -2],
      "k^alpha/mean_std_norm/K=0": [1, 1, -1, -1],
      "recipe/mean_norm/K=1/base_group=True": { A: [2, 2, -2, -2], params: { eps: 0 } },
    },
  },
  rewardflow: {
    uses,
    params: { gamma: 0.5, omega: 1 },
    inputs: { final_state: { t: "end", u: "B" } },
    // V(end) = 4, V(B) = 2, V(A) = 1; the second episode stays in B.
    expected: { V: { p: { A: 1, B: 2, end: 4 } }, signal: [1, 2, 1, 0], A: [2, 3, -2, -3] },
  },
  rebel: {
    uses,
    params: { gamma: 0.5 },
    inputs: { belief: ["x", "y", "x", "y"], r_cons: [1, 0, 0, 0] },
    // Outcomes 3 and 0; seen from the first step 1.5 and 0; beliefs 1 and 0 at the first.
    expected: { A_E: [1.5, 1.5, -1.5, -1.5], A_S: [0.75 + 0.5, 1.5, -1.25, -1.5], A: [2.125, 2.25, -2.125, -2.25] },
  },
  empg: {
    uses,
    params: { k: Math.LN2, k_f: Math.LN2, zeta: 1, eps: 0 },
    inputs: { entropy: [1, 3, 1, 3], A: [3, 3, -3, -3] },
    // g = 1 and 1/2 over 3/4; bonuses 1/2, 0, 1/2, 0, their mean 1/4.
    expected: { h: [0, 1, 0, 1], g: [4 / 3, 2 / 3, 4 / 3, 2 / 3], A: [4.25, 1.75, -3.75, -2.25] },
  },
  a2tgpo: {
    uses,
    params: { eps: 0, lambda: 0.5 },
    inputs: { IG: [3, null, 1, null], A_outcome: [1, 1, -1, -1] },
    expected: { z: [1, 0, -1, 0], D: [1, 0, -1, 0], A: [1.5, 1, -1.5, -1], c: [1.1386351471, 1, 0.8613648529, 1] },
  },
  vpr_state_groups: {
    params: { eps: 0 },
    inputs: { state_group: ["a", "a", "b", "b", "c"], reward: [3, 1, 2, 2, 7] },
    expected: { A: [1, -1, 0, 0, 0], skip: [0, 0, 1, 1, 1], mask: [1, 1, 0, 0, 0] },
  },
  gdpo: {
    params: { eps: 0, weights: [1, 0] },
    inputs: {
      uid: [0, 0],
      rewards: [
        [1, 0],
        [5, 5],
      ],
    },
    expected: { A: [Math.SQRT1_2, -Math.SQRT1_2] },
  },
  ema_grpo: {
    params: { eps: 0, decay: 0.5 },
    inputs: {
      batches: [
        { uid: [0, 0], task: ["x", "x"], reward: [2, 0] },
        { uid: [0, 0], task: ["x", "x"], reward: [4, 0] },
      ],
    },
    // Moments 1 and 2, then 1.5 and 5: deviation √2.75.
    expected: {
      first: { A: [1, -1], std: [1] },
      second: { A: [2 / Math.sqrt(2.75), -2 / Math.sqrt(2.75)], m1: [1.5], m2: [5] },
    },
  },
  memagent: {
    inputs: { uid: [0, 0], reward: [1, 0], conversations: [2, 1] },
    expected: { A_conversation: [0.5, 0.5, -0.5], A_sample: [0.5, -0.5] },
  },
  dpepo: {
    inputs: {
      actions: [
        ["a", "b"],
        ["a", "a"],
      ],
      z: [1, -1],
    },
    // The second step: a again in the first environment, and twice at once; pairs (a, a) and (b, a) are new.
    expected: { R_step: [1, (0.8 + (2.8 / 3 + 1) / 2) / 2], A: [1, -(2 - (0.8 + (2.8 / 3 + 1) / 2) / 2)] },
  },
  spear: {
    inputs: { step: [0, 100, 200, 300], history: [1, 5, 2], R: [3, 2] },
    expected: { coef: [0, 0.5, 1, 1], p50: 2, A_tilde: [1, 0], keep: [true, false] },
  },
  strata: {
    params: { eps: 0 },
    inputs: {
      returns: [
        [4, 0],
        [2, 2],
      ],
    },
    // R(z) = 4 and 2, their deviation √2.
    expected: {
      strategy_adv: [Math.SQRT1_2, -Math.SQRT1_2],
      action_adv: [
        [Math.SQRT1_2, -Math.SQRT1_2],
        [0, 0],
      ],
    },
  },
  // V = 2: an entropy of log 2 leaves nothing of the second part. Turns at -0.5, -0.4 (near), -0.9 (far); the second is sampled twice more.
  t2po: {
    params: { V: 2, consecutive: 2, tol: 1e-4, think_budget: 4 },
    inputs: {
      token_part: { max_logp: [-1, -2], entropy: [Math.LN2, 0] },
      cut_part: { scores: [1, 1, 1, 1] },
      long_part: { scores: [1, 2, 3, 4, 5] },
      free_part: { scores: [1, 2] },
      turn_part: { turn_scores: [-0.5, -0.4, -0.9, -0.9] },
      attempts_part: { turn_scores: [[-0.5], [-0.4, -0.3, -0.6], [-1, -2]] },
    },
    expected: {
      token_part: { token_score: [-0.6, -0.8], turn_score: -0.7 },
      cut_part: { cut_after: 3, cut_index: 2, force_close: true, cut: 3 },
      long_part: { cut: 4 },
      free_part: { cut: null, cut_at: -1, is_cut: false },
      turn_part: { regenerate: [false, true, false, false] },
      attempts_part: { n_regen: [0, 2, 0], accepted: [-0.5, -0.6, -1] },
    },
  },
  // A rise of 0.4 lowers what is drawn by 0.2.
  arpo_branch: {
    params: { H_0: 0.2, beam_size: 3, free_slots: 3 },
    inputs: { H: [0.6, 0.6, 0.2, 0.6], rand: [0.69, 0.71, 0.5, 0.1] },
    expected: {
      score: [0.49, 0.51, 0.5, -0.1],
      wants: [true, false, true, true],
      branch: [1, 0, 1, 0],
      count: [2, 0, 1, 0],
    },
  },
  dgpo: {
    params: { tau: 1, kappa: 2 },
    inputs: { d: [0, Math.LN2], H_tilde: [1, 1], A: 3 },
    expected: { s: [0, Math.LN2], w: [2 / 3, 4 / 3], A_t: [2, 4] },
  },
  losses: {
    params: {
      clip_low: 0.2,
      clip_high: 0.28,
      dual_clip_c: 3,
      sapo_tau: [1, 1.05],
      klcov_ratio: 0.2,
      klcov_coef: 1,
      seq_mean_token_sum_norm_divisor: 4,
    },
    inputs: { mask: [[1, 0]], old_logp: [[-1, 0]], logp: [[-1, 0]], advantage_per_sequence: [2] },
    expected: {
      ppo_clip_no_dual: { token_loss: [[-2, 0]], by_aggregation: { "token-mean": { loss: -2, dlogp: [[-2, 0]] } } },
      cispo: { token_loss: [[2, 0]], by_aggregation: { "seq-mean-token-sum": { loss: 2, dlogp: [[-2, 0]] } } },
      "gspo_clip.2/.28": { loss: -2, dlogp: [[-2, 0]] },
    },
  },
}

describe("a file whose topics share a fixture", () => {
  it("agrees with computation by hand, in every topic", async () => {
    const reports = await compareVectors({ _meta: {}, fixture, ...byHand })
    expect(reports.map(({ topic }) => topic).sort()).toEqual(Object.keys(successorTopics).sort())
    for (const { topic, compared, ...rest } of reports) {
      expect({ topic, ...rest }).toEqual({ topic, differ: 0, first: [], failed: [] })
      expect(compared).toBeGreaterThan(1)
    }
  })

  it("names a different number of a configuration, and an unknown topic or loss", async () => {
    const expected = { "mean_norm/per_traj": { A: [3, 3, -3, -3.01], note: "by hand" } }
    const [gigpo, chess, losses] = await compareVectors({
      fixture,
      gigpo: { ...byHand.gigpo, expected },
      chess: {},
      losses: { ...byHand.losses, expected: { "holder_seq_p=9": { loss: 1 } } },
    })
    expect(gigpo).toMatchObject({
      compared: 4,
      differ: 1,
      first: [{ where: "gigpo mean_norm/per_traj A[3]", actual: -3 }],
    })
    expect(chess!.failed).toEqual(['chess: there is no topic "chess"'])
    expect(losses).toMatchObject({ compared: 1, differ: 1, failed: [] })
  })

  it.each<[string, unknown]>([
    [
      "several cases",
      {
        cases: [
          { inputs: { step: [0, 9] }, expected: [2, 3] },
          { step: 99, expected: 4 },
        ],
      },
    ],
    ["lists of cases", { inputs: [{ n: 0 }, { n: 9 }], expected: [2, 3] }],
    ["inputs beside the parameters", { n: [0, 9], expected: { K: [2, 3] } }],
    ["inputs among the parameters", { params: { n: [0, 9], L: 3 }, expected: { k: [2, 3], B2F: [1, 0] } }],
  ])("reads %s", async (_, layout) => {
    const shared = { params: { k_start: 2, eta: 5, T_max: 4 } }
    const { params, ...rest } = layout as { params?: object }
    const vector = { ...rest, params: { ...shared.params, ...params } }
    const [report] = await compareVectors({ fixture, tcod_schedule: vector })
    expect(report).toMatchObject({ differ: 0, failed: [] })
    expect(report!.compared).toBeGreaterThan(1)
    const parameters = { ...rest, inputs: { ...shared.params }, params }
    if ("n" in rest) expect((await compareVectors({ fixture, tcod_schedule: parameters }))[0]).toEqual(report)
  })

  it("reads steps of a vector's own: records, or episodes by their states and rewards", async () => {
    const records = fixture.steps.map(({ traj, state, reward }) => ({ traj, state, reward }))
    const trajectories = [
      { states: ["A", "B"], rewards: [0, 4] },
      { states: ["A", "B"], rewards: [0, 0] },
    ]
    for (const inputs of [{ steps: records }, { trajectories }]) {
      const [report] = await compareVectors({ fixture: null, gigpo: { ...byHand.gigpo, inputs } })
      expect(report).toEqual({ topic: "gigpo", compared: 12, differ: 0, first: [], failed: [] })
    }
  })

  it.each<[unknown, RegExp]>([
    [null, /it is no vector/],
    [3, /it is no vector/],
    [[], /it holds no vector/],
    [{ params: {} }, /it has no expected/],
    [{ params: [], expected: {} }, /its params/],
    [{ inputs: { n: [1] }, expected: { k: [1] } }, /it has no k_start or/],
    [{ inputs: 3, expected: { k: [1] } }, /its inputs/],
    [{ ...byHand.tcod_schedule, expected: {} }, /nothing is expected/],
    [{ ...byHand.tcod_schedule, expected: { note: "none" } }, /nothing is expected/],
  ])("reports that it cannot read %j, and continues", async (vector, message) => {
    const [unread, read] = await compareVectors({ fixture, tcod_schedule: vector, spear: byHand.spear })
    expect(unread).toMatchObject({ compared: 0, failed: [expect.stringMatching(/^tcod_schedule/)] })
    expect(unread!.failed[0]).toMatch(message)
    expect(read).toMatchObject({ differ: 0, failed: [] })
  })

  it("counts a result that it does not know as one that differs, by its name", async () => {
    const [report] = await compareVectors({ fixture, t2po: { inputs: { scores: [1] }, expected: { gain: [1] } } })
    expect(report).toMatchObject({ compared: 1, differ: 1, first: [{ where: "t2po gain[0]", actual: undefined }] })
  })

  it("rejects a topic that uses steps which are not there", async () => {
    const [report] = await compareVectors({ fixture: null, gigpo: byHand.gigpo })
    expect(report!.failed).toHaveLength(1)
  })
})

const shared = fileURLToPath(new URL("../../../shared/vectors/successors.json", import.meta.url))

it.skipIf(!existsSync(shared))(
  "independent numbers (skipped where ../shared is absent) are those of all that it has",
  async () => {
    const { losses, ...rest } = JSON.parse(await readFile(shared, "utf8"))
    const expected = Object.fromEntries(Object.entries(losses.expected).filter(([name]) => !name.startsWith("holder_")))
    const reports = (await compareVectors({ ...rest, losses: { ...losses, expected } })).filter(({ topic }) =>
      Object.hasOwn(successorTopics, topic),
    )
    expect(reports.length).toBeGreaterThanOrEqual(5)
    for (const { topic, differ, first, failed } of reports)
      expect({ topic, differ, first, failed }).toEqual({ topic, differ: 0, first: [], failed: [] })
  },
)
