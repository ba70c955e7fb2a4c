import type { Algorithm } from "../algorithm.ts"

/** Learning without rewards: from experts, transcripts, preferences and teachers. */
export const data: readonly Algorithm[] = [
  {
    system: "IPO",
    origin: "baseline",
    changes: ["data", "loss"],
    equation: "(h - 1 / (2 β))²",
    source: "arXiv 2310.12036",
    file: "src/loss/dpo.ts",
    set: { "sft.loss.name": "dpo", "sft.loss.objective": "ipo", "sft.data": "pairs.jsonl" },
    status: "exact",
  },
  {
    system: "IQL (implicit Q-learning)",
    origin: "relative",
    changes: ["data"],
    equation: "V by the expectile τ of Q = r + γ V'; completions weighted by min(e^((Q - V) / temperature), maximum)",
    source: "arXiv 2110.06169",
    file: "src/sft/implicit-q.ts",
    set: { "sft.data": "episodes", "sft.successes": false, "sft.implicitQ.expectile": 0.7 },
    status: "exact",
    note: "With `gigpo sft`, over steps, as in STEP-HRL. Q is estimated from one sample instead of a network: an implementation choice.",
  },
  {
    system: "SDAR",
    origin: "successor",
    changes: ["data", "loss"],
    equation: "policy loss + 0.01 mean of σ(5 d) d, d = log p(token | more text) - log p(token), σ(5 d) a constant",
    source: "arXiv 2605.15155, its code (ZJU-REAL/SDAR)",
    file: "src/loss/compose-loss.ts",
    otherFiles: ["src/training/privileged.ts"],
    set: {
      "training.estimator.name": "grpo",
      "training.loss.teacherWeight": 0.01,
      "training.privileged.sees": "best-episode",
    },
    status: "interpreted",
    note:
      "The term of the loss is exact. The authors' teacher sees skills that another model wrote; ours sees the best other episode, the expert's " +
      "actions or the outcome.",
  },
  {
    system: "on-policy self-distillation (OPSD, SDFT)",
    origin: "relative",
    changes: ["data", "loss"],
    equation: "KL(policy ‖ the policy that sees a demonstration) on the policy's completions",
    source: "prime-rl (opsd)",
    file: "src/training/privileged.ts",
    set: { "training.loss.name": "distillation", "training.privileged.sees": "best-episode" },
    status: "interpreted",
    note:
      "The demonstration is the best other episode, or the expert's (`sees: expert`). It is in front of the sequence, as a message of the " +
      "system, as in prime-rl; the KL is ours.",
  },
  {
    system: "AMATA",
    origin: "successor",
    changes: ["data"],
    source: "abstract",
    status: "undefined",
    note: "Preferences among agents. Related: DPO on preference pairs.",
  },
  {
    system: "RoboAgent",
    origin: "successor",
    changes: ["data"],
    source: "abstract",
    status: "undefined",
    note: "Behavior cloning, DAgger, then reinforcement learning; this package has the first and the last.",
  },
  {
    system: "EUEA",
    origin: "successor",
    changes: ["data"],
    source: "abstract",
    status: "needs images",
    note: "Its last stage is GRPO.",
  },
]
