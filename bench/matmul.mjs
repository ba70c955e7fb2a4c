// Matrix multiplication of the CPU device, in a program without Node, and of oneDNN if its library is installed.
import { describeMachine, runCoreProgram, writeResult } from "./machine.mjs"
import { held } from "./peers.mjs"

const output = runCoreProgram("matmul", held)
await writeResult("matmul", `# Matrix multiply\n\n${describeMachine()}\n\n\`\`\`\n${output.trimEnd()}\n\`\`\``)
