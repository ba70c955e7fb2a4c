#!/usr/bin/env node
import { Command } from "commander"
import { version } from "../version.ts"
import { commandLine } from "./arguments.ts"
import { algorithmsCommand } from "./commands/algorithms.ts"
import { anchorsCommand } from "./commands/anchors.ts"
import { chatCommand } from "./commands/chat.ts"
import { cloneCommand } from "./commands/clone.ts"
import { compareCommand } from "./commands/compare.ts"
import { showConfigCommand } from "./commands/config.ts"
import { doctorCommand } from "./commands/doctor.ts"
import { engineCommand } from "./commands/engine.ts"
import { episodesCommand } from "./commands/episodes.ts"
import { estimateCommand } from "./commands/estimate.ts"
import { evaluateCommand } from "./commands/evaluate.ts"
import { exportCommand } from "./commands/export.ts"
import { initCommand } from "./commands/init.ts"
import { panelCommand } from "./commands/panel.ts"
import { playCommand } from "./commands/play.ts"
import { reportCommand } from "./commands/report.ts"
import { retrieverCommand } from "./commands/retriever.ts"
import { runsCommand } from "./commands/runs.ts"
import { serveCommand } from "./commands/serve.ts"
import { gatewayCommand, trainCommand } from "./commands/train.ts"
import { viewCommand } from "./commands/view.ts"
import { runProgram } from "./program.ts"

const program = new Command("gigpo")
  .description("Train LLM agents by reinforcement learning (GiGPO), natively.")
  .version(version)
  .option("--debug", "print stack traces of errors; also by the environment variable DEBUG")
  .addCommand(initCommand())
  .addCommand(cloneCommand())
  .addCommand(trainCommand())
  .addCommand(gatewayCommand())
  .addCommand(anchorsCommand())
  .addCommand(viewCommand())
  .addCommand(reportCommand())
  .addCommand(evaluateCommand())
  .addCommand(compareCommand())
  .addCommand(panelCommand())
  .addCommand(runsCommand())
  .addCommand(episodesCommand())
  .addCommand(exportCommand())
  .addCommand(playCommand())
  .addCommand(chatCommand())
  .addCommand(serveCommand())
  .addCommand(engineCommand())
  .addCommand(retrieverCommand())
  .addCommand(estimateCommand())
  .addCommand(algorithmsCommand())
  .addCommand(showConfigCommand())
  .addCommand(doctorCommand())
  .addHelpText("after", `\nTo begin, where nothing is there yet: ${commandLine("init", "sokoban", "demo")}`)
  .addHelpText(
    "after",
    "\nExit codes: 0 done, 2 wrong command or input, 3 device or build missing, 4 failed, " +
      "130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP (the terminal has gone).",
  )

await runProgram(program)
