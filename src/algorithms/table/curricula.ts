import type { Algorithm } from "../algorithm.ts"

const curriculum = (name: string) => ({ "training.curriculum.name": name })

/** Curricula: choice of tasks, start states and step limits as training progresses. */
export const curricula: readonly Algorithm[] = [
  {
    system: "TCOD",
    origin: "successor",
    changes: ["curriculum", "data"],
    equation:
      "k = min(k_start + floor(n / η), T_max) steps, the first or the last after the expert's; loss KL(teacher ‖ policy)",
    source: "arXiv 2604.24005",
    file: "src/training/curriculum/tcod.ts",
    set: { ...curriculum("tcod"), "training.loss.name": "distillation" },
    status: "exact",
    note: "Needs a teacher. Its own divergence is `divergence: forward`.",
  },
  {
    system: "Horizon-length empirical study",
    origin: "successor",
    changes: ["curriculum"],
    equation: "steps of an episode grow from one number to another",
    source: "abstract",
    file: "src/training/curriculum/horizon.ts",
    set: curriculum("horizon"),
    status: "reading",
    note: "The ramp and its rounding are ours.",
  },
  {
    system: "Agent-World",
    origin: "successor",
    changes: ["curriculum", "environment"],
    equation: "chance of a task ∝ floor + (1 - floor) 4 p (1 - p), p its running rate of success",
    source: "abstract",
    file: "src/training/curriculum/by-success.ts",
    set: curriculum("by-success"),
    status: "reading",
    note: "The rule is ours; its worlds that are made by a model are absent.",
  },
]
