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
