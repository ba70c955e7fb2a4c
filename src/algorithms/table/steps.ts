import type { Algorithm } from "../algorithm.ts"

const estimator = (name: string) => ({ "training.estimator.name": name })

/** Advantages of single steps: GiGPO, and estimators that compare other steps or use other signals. */
export const steps: readonly Algorithm[] = [
  {
    system: "Odysseus",
    origin: "successor",
    changes: ["credit"],
    equation: "PPO with a critic of turns",
    source: "abstract",
    file: "src/credit/ppo.ts",
    set: estimator("turn-ppo"),
    status: "reading",
    note: "The family alone: its own details are not defined in public, its games are images.",
  },
  {
    system: "FineStep (Every Step Counts)",
    origin: "successor",
    changes: ["credit", "reward"],
    source: "abstract",
    status: "undefined",
    note: "Step credit for text-to-SQL; the environment `sql` is there.",
  },
]
