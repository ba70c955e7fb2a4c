import { program } from "./global-options.ts"
import { runProgram } from "./program.ts"

await runProgram(program)
