import type { Algorithm } from "../algorithm.ts"

const other = (system: string, change: "environment" | "other", note: string): Algorithm => ({
  system,
  origin: "successor",
  changes: [change],
  source: "abstract",
  status: "not an algorithm",
  note,
})

/** Works that cite GiGPO and contain nothing that a training could select. */
export const others: readonly Algorithm[] = [
  other(
    "ClawForge / ClawForge-Bench",
    "environment",
    "Tasks on a command line with conflicts of state; its format was not read.",
  ),
  other("RiskWebWorld", "environment", "Graphical interfaces of shops; needs images."),
  other("The Moltbook Files", "other", "A study of what is learned from forums of agents."),
  other("ROSE", "other", "Serving and training on the same GPUs; here both are one process."),
  other(
    "Generate-Filter-Control-Replay survey",
    "other",
    "Rollouts in four words: hooks `sample`, `keep`, `onTurn`, replay.",
  ),
  other("Landscape of Agentic RL", "other", "A survey."),
  other("GUI Agents with RL", "other", "A survey."),
  other("From Reasoning to Agentic: Credit Assignment", "other", "A survey."),
  other("Survey of Self-Evolving Agents", "other", "A survey."),
]
