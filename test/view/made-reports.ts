import type { IterationReport } from "../../src/runs/report.ts"
import { wilsonInterval } from "../../src/training/wilson.ts"
import { Random } from "../../src/util/random.ts"
import type { Inlined } from "../../src/view/data/inlined.ts"
import { madeRun } from "./made-run.ts"

// Reports of a run that was never run, with all that a real one tells: it learns, evaluates every tenth iteration, and is noisy.

export function madeReports(iterations: number, seed: number): readonly IterationReport[] {
  const random = new Random(seed)
  const noise = () => random.uniform() - 0.5
  return Array.from({ length: iterations }, (_, at) => {
    const iteration = at + 1
    const skill = (0.85 + seed / 40) / (1 + Math.exp(-(iteration - iterations / 3) / (iterations / 9)))
    const success = Math.min(Math.max(Math.round((skill + noise() / 5) * 128) / 128, 0), 1)
    const [rollout, advantage, update] = [40 - 10 * skill + 4 * noise(), 0.2, 22 + 2 * noise()]
    const solved = Math.round(skill * 256)
    const evaluation = {
      episodes: 256,
      failed: 0,
      success: solved / 256,
      successInterval: wilsonInterval(solved, 256),
      meanReturn: 10 * skill - 1,
      meanSteps: 12 - 4 * skill,
      metrics: { success: solved / 256 },
    }
    return {
      iteration,
      time: new Date(Date.UTC(2026, 0, 1, 0, at)).toISOString(),
      metrics: {
        "episode/success": success,
        "episode/count": 128,
        "episode/return": 10 * success - 1 + noise(),
        "episode/steps": 12 - 4 * skill + noise(),
        "episode/failed": 0,
        "group/constant": skill / 2,
        "action/valid": Math.min(0.9 + skill / 9, 1),
        "completion/tokens": 90 - 30 * skill + 5 * noise(),
        "completion/truncated": 0.02,
        "prompt/tokens": 410 + 5 * noise(),
        "advantage/mean": 0.02 * noise(),
        "advantage/std": 0.8 + 0.1 * noise(),
        "step-group/count": 700 - 200 * skill,
        "step-group/size": 2 + 3 * skill + 0.2 * noise(),
        "step-group/singletons": 0.5 - 0.3 * skill,
        "advantage/step-share": 0.4 + 0.1 * noise(),
        "policy/kl": 0.002 + 0.002 * random.uniform(),
        "policy/entropy": 1.2 - 0.8 * skill + 0.05 * noise(),
        "policy/ratio": 1 + 0.01 * noise(),
        "loss/policy": 0.02 * noise(),
        "loss/kl": 0.03 * skill + 0.002 * random.uniform(),
        "optimizer/gradient-norm": 0.5 + 0.4 * random.uniform(),
        "optimizer/learning-rate": 1e-6,
        "time/rollout": rollout,
        "time/advantage": advantage,
        "time/update": update,
        "time/iteration": rollout + advantage + update + 1,
        "time/tokens-per-second": 2100 + 300 * noise(),
        "time/run": iteration * 70 + Math.floor(iteration / 10) * 90,
      },
      ...(iteration % 10 === 0 && { evaluation }),
    }
  })
}

/** A made run that reports all this. */
export function reportingRun(id: string, iterations: number, groups = 2): Inlined["runs"][number] {
  const run = madeRun(id, iterations, groups)
  return { ...run, reports: { ...run.reports, reports: madeReports(iterations, Number.parseInt(id, 10) || 0) } }
}
