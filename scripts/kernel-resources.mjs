// Compares the resources of each CUDA kernel, as ptxas reports them, with the table in test/cuda/emulator/kernel_resources.inc: registers and
// spilled bytes per thread on each architecture, and static shared memory per block. Any difference is an error. The emulator checks launches
// against the same table.
//
//   node scripts/kernel-resources.mjs           # compares
//   node scripts/kernel-resources.mjs --log f   # compares the output f of a build for these architectures with -Xptxas=-v
//   node scripts/kernel-resources.mjs --update  # writes the table
//
// With cuobjdump (on the PATH, or at GIGPO_CUOBJDUMP) also counts the memory barriers of the whole GPU in matmul_wgmma.cu, which --objects finds
// in a build folder. A block meets the others of its cluster at its start and end: two. In the loop over k each would take hundreds of clocks.
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs, promisify } from "node:util"

const { values } = parseArgs({
  options: { update: { type: "boolean", default: false }, log: { type: "string" }, objects: { type: "string" } },
})
const root = fileURLToPath(new URL("..", import.meta.url))
const table = join(root, "test/cuda/emulator/kernel_resources.inc")
const architectures = ["sm_80", "sm_90a"]
const run = promisify(execFile)

const nvcc = await run("nvcc", ["--version"]).then(
  ({ stdout }) => stdout.match(/release ([0-9.]+)/)?.[1],
  () => undefined,
)
if (nvcc === undefined) {
  console.log("Skipped: nvcc was not found, and only nvcc reports the resources of kernels.")
  process.exit(0)
}
const kept = readFileSync(table, "utf8")
const [, keptBy] = kept.match(/^\/\/ By nvcc ([0-9.]+)/m) ?? []
if (!values.update && keptBy !== nvcc) {
  console.log(`Skipped: the table was made with nvcc ${keptBy}, and ${nvcc} may assign registers differently.`)
  process.exit(0)
}

// kernel -> { shared, registers: [of each architecture], spilled: [] }
async function resourcesOf(source, folder) {
  const targets = architectures.flatMap((name) => ["-gencode", `arch=${name.replace("sm", "compute")},code=${name}`])
  const object = join(folder, `${source}.o`)
  const launcher = process.env.CMAKE_CUDA_COMPILER_LAUNCHER
  const [command, ...first] = launcher ? [launcher, "nvcc"] : ["nvcc"]
  const flags = ["-std=c++20", "-O3", "-DNDEBUG", "-Xptxas", "-v", ...targets] // those of CMake's Release build
  const { stderr } = await run(command, [...first, ...flags, "-I.", "-c", `cuda/${source}`, "-o", object], {
    cwd: root,
    maxBuffer: 1 << 26,
  })
  return entriesOf(stderr)
}

function entriesOf(output) {
  // A matrix product with serialized wgmma instructions spills nothing, but loses most of its speed.
  const serialized = output.split("\n").find((line) => /wgmma.*serializ/i.test(line))
  if (serialized) throw new Error(serialized)
  const entries = output.matchAll(
    /entry function '(\S+)' for '(\w+)'[\s\S]*?(\d+) bytes spill stores, (\d+) bytes spill loads[\s\S]*?Used (\d+) registers(?:.*?, (\d+) bytes smem)?/g,
  )
  return [...entries].map(([, symbol, architecture, stores, , registers, shared]) => ({
    symbol,
    architecture,
    spilled: Number(stores),
    registers: Number(registers),
    shared: Number(shared ?? 0),
  }))
}

async function inParallel(items, work) {
  const waiting = [...items]
  const found = []
  const workers = Array.from({ length: availableParallelism() }, async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) found.push(...(await work(item)))
  })
  await Promise.all(workers)
  return found
}

// "void gigpo::cuda::(anonymous namespace)::fold<float, 4>(float*)" -> "fold<float, 4>", the names that the emulator uses.
async function namesOf(symbols) {
  const names = run("c++filt", ["-p"], { maxBuffer: 1 << 26 })
  names.child.stdin.end(`${symbols.join("\n")}\n`)
  return (await names).stdout
    .trimEnd()
    .split("\n")
    .map((name) => name.replace(/gigpo::|cuda::|\(anonymous namespace\)::/g, ""))
}

async function compiled() {
  const folder = mkdtempSync(join(tmpdir(), "kernel-resources-"))
  const sources = readdirSync(join(root, "cuda")).filter((name) => name.endsWith(".cu"))
  const entries = inParallel(sources, (source) => resourcesOf(source, folder))
  return await entries.finally(() => rmSync(folder, { recursive: true }))
}

/** Checks that no wgmma kernel has a GPU-wide memory barrier in its loops. */
async function checkBarriers() {
  if (!values.objects) return
  const objects = readdirSync(values.objects, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith("matmul_wgmma.cu.o"),
  )
  if (objects.length === 0) throw new Error(`${values.objects} has no matmul_wgmma.cu.o.`)
  const cuobjdump = process.env.GIGPO_CUOBJDUMP || "cuobjdump"
  const dump = await run(cuobjdump, ["-sass", "-arch", "sm_90a", join(values.objects, objects[0])], {
    maxBuffer: 1 << 29,
  }).catch((error) => {
    if (error.code === "ENOENT") return undefined
    throw error
  })
  if (!dump) return console.log("Barriers were not counted: cuobjdump was not found.")
  const counts = dump.stdout
    .split(/Function : /)
    .slice(1)
    .map((text) => text.match(/MEMBAR\.\w+\.GPU/g)?.length ?? 0)
  if (counts.length === 0) throw new Error(`cuobjdump shows no kernel in ${objects[0]}.`)
  console.log(`GPU-wide memory barriers in ${counts.length} wgmma kernels: at most ${Math.max(...counts)}`)
  if (Math.max(...counts) > 2) {
    console.error(
      "A wgmma kernel has GPU-wide memory barriers besides the two meetings of its cluster: see barrier_arrive_at in cuda/ptx_sm90.cuh.",
    )
    process.exit(1)
  }
}

const entries = values.log === undefined ? await compiled() : entriesOf(readFileSync(values.log, "utf8"))
if (entries.length === 0) throw new Error(`${values.log} has no resources of kernels: build with -Xptxas=-v.`)
const names = await namesOf(entries.map(({ symbol }) => symbol))
const kernels = new Map()
for (const [index, { architecture, spilled, registers, shared }] of entries.entries()) {
  const at = kernels.get(names[index]) ?? {
    shared: 0,
    figures: architectures.map(() => ({ registers: 0, spilled: 0 })),
  }
  const figures = at.figures[architectures.indexOf(architecture)]
  if (figures.registers > 0)
    throw new Error(`Two kernels have the name ${names[index]}, so the emulator cannot distinguish them.`)
  Object.assign(figures, { registers, spilled })
  at.shared = Math.max(at.shared, shared)
  kernels.set(names[index], at)
}

const rows = [...kernels]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([name, { shared, figures }]) =>
      `{"${name}", ${shared}, ${figures.map((f) => `{${f.registers}, ${f.spilled}}`).join(", ")}},`,
  )
const spilling = [...kernels]
  .filter(([, { figures }]) => figures.some(({ spilled }) => spilled > 0))
  .map(([name]) => name)
console.log(`${kernels.size} kernels; of these spill: ${spilling.join(", ") || "none"}`)
await checkBarriers()
if (values.update) {
  const title = [
    `// By nvcc ${nvcc}: scripts/kernel-resources.mjs --update writes this, without the option it compares.`,
    `// Kernel, bytes of static shared memory, and {registers of a thread, bytes it spills} for ${architectures.join(" and ")}.`,
  ]
  writeFileSync(table, `${[...title, ...rows].join("\n")}\n`)
} else {
  const before = kept
    .trimEnd()
    .split("\n")
    .filter((line) => line.startsWith("{"))
  const differences = [
    ...before.filter((row) => !rows.includes(row)).map((row) => `- ${row}`),
    ...rows.filter((row) => !before.includes(row)).map((row) => `+ ${row}`),
  ]
  if (differences.length > 0) {
    console.error(`The resources of the kernels differ from ${table}:\n${differences.join("\n")}`)
    console.error("If this is intended, run scripts/kernel-resources.mjs --update and commit the table.")
    process.exit(1)
  }
}
