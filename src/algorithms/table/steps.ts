import type { Algorithm } from "../algorithm.ts"

const estimator = (name: string) => ({ "training.estimator.name": name })

/** Advantages of single steps: GiGPO, and estimators that compare other steps or use other signals. */
export const steps: readonly Algorithm[] = [
  {
    system: "Odysseus",
    origin: "successor",
    changes: ["credit"],
    equation: "PPO with a critic per turn",
    source: "abstract",
    file: "src/credit/ppo.ts",
    set: estimator("turn-ppo"),
    status: "interpreted",
    note: "PPO with turn-level values only. Further details are not documented, and the games need images.",
  },
  {
    system: "FineStep (Every Step Counts)",
    origin: "successor",
    changes: ["credit", "reward"],
    source: "abstract",
    status: "undefined",
    note: "Step credit for text-to-SQL. Related: the environment `sql`.",
  },
]
