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
    note: "With `gigpo sft`, over steps, as STEP-HRL learns. Q is one sample of it, with no network of its own: our reading.",
  },
  {
    system: "AMATA",
    origin: "successor",
    changes: ["data"],
    source: "abstract",
    status: "undefined",
    note: "Preferences among agents; preference pairs are learned by DPO.",
  },
  {
    system: "RoboAgent",
    origin: "successor",
    changes: ["data"],
    source: "abstract",
    status: "undefined",
    note: "Cloning, then DAgger, then reinforcement: the first and the last are commands here.",
  },
  {
    system: "EUEA",
    origin: "successor",
    changes: ["data"],
    source: "abstract",
    status: "images",
    note: "Its last stage is GRPO.",
  },
]
