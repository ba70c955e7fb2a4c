// npm run bench [-- name …]: runs all benchmarks, or the given ones. Results are written to bench/results/.
const all = [
  "matmul",
  "train",
  "generate",
  "vision",
  "bfloat16",
  "anchors",
  "advantages",
  "estimators",
  "bookkeeping",
  "prefixes",
  "critic",
  "iteration",
  "recording",
  "alfworld",
  "webshop",
  "retrieval",
  "episodes",
  "open",
  "serve",
  "staleness",
  "pretrained",
  "hostile",
  "view",
]
const wanted = process.argv.slice(2)
const unknown = wanted.find((name) => !all.includes(name))
if (unknown) {
  console.error(
    `There is no benchmark "${unknown}". Benchmarks: ${all.join(", ")}. bench:paper and bench:agents are separate programs.`,
  )
  process.exit(2)
}
for (const name of wanted.length > 0 ? wanted : all) await import(`./${name}.mjs`)
