// The matrix multiply of the CPU device, in a program without Node; beside oneDNN where its library is installed.
import { spawnSync } from "node:child_process"
import { describeMachine, writeResult } from "./machine.mjs"

const run = (command, ...args) => {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" })
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}\n${stdout}${stderr}`)
  return stdout
}
run("cmake", "-S", ".", "-B", "build-bench", "-DGIGPO_CUDA=OFF")
run("cmake", "--build", "build-bench", "-j", "2", "--target", "bench_matmul")
const output = run("build-bench/bench_matmul")
await writeResult("matmul", `# Matrix multiply\n\n${describeMachine()}\n\n\`\`\`\n${output.trimEnd()}\n\`\`\``)
