import { availableParallelism, tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

/** One more than cores, because some tests wait for a server or a process, and because a tiny model seldom uses two cores at once. */
const workers = availableParallelism() + 1
/** Test files that mock a module. They are isolated, so that no other file gets the mock. */
const isolated = ["test/environment/search/search.test.ts", "test/files/atomic-directory.test.ts"]
/** Test files that share the GPU, or the emulated one. They run one after the other, after all others. */
const device = ["test/cuda/*.test.ts"]

/**
 * Test files of more than ten seconds, by folder: faults at every write, kills, long trainings, browsers. `npm run test:all` and CI
 * (GIGPO_TEST_ALL=1) run them, `npm test` does not.
 */
const long = Object.entries({
  agents: "process-agent",
  algorithms: "cli training",
  bench: "maze paper",
  cli:
    "adapter cloning-data cloning commands custom-engine date ending engine escapes estimate gateway guards interruption lengths links " +
    "named-options other-environment own-environment recorded-run recording refusals run-state serve server-guards stopped-phases teacher trust waiting writing",
  credit: "hgpo in-training",
  endpoint: "foreign-json hostile-tools streamed-calls",
  entries: "loaded",
  "environment/alfworld": "expert folder generate",
  "environment/cards": "formula",
  environment: "completion-pattern",
  "environment/memory": "memories",
  ".": "examples extending",
  files: "atomic-directory intact",
  fuzz: "fuzz",
  hub: "cli resolve-model",
  options: "hover",
  package: "contents cuda",
  benchmark: "shipped",
  path: "pretrained",
  process: "killed-cloning killed-engine killed-training killed-weights killed-writes memory stopped-training",
  rollout: "chaos shipped-hooks",
  readme: "blocks",
  runs: "frozen-weights links model-links resumed same-environment same-tokenizer",
  sft: "run",
  site: "site",
  tinker: "adapter faults limits lost-runs same-script sessions",
  tokenizer: "families hostile-text jinja strange-files",
  training: "agent-runs busy-policy curriculum seams stopping",
  "view/browser": "curves draw episodes-list episodes-read graph outline real-run recorded runs served shell",
  "view/record": "hostile",
}).flatMap(([folder, names]) => names.split(" ").map((name) => join("test", folder, `${name}.test.ts`)))
const entries = fileURLToPath(new URL("src/entries", import.meta.url))

/** Whether GIGPO_TEST_ALL asks for the long test files. A wrong value would otherwise pass without them. */
function everyTest(value = ""): boolean {
  if (value === "1") return true
  if (value === "" || value === "0") return false
  throw new Error(
    `GIGPO_TEST_ALL is "${value}": set it to 1 to run the long test files too, or to 0 or nothing to leave them out.`,
  )
}

export default defineConfig(({ mode }) => {
  // A file that the command line names is run in any case.
  const named = process.argv.some((word) => word.startsWith("test/"))
  const all = mode === "all" || everyTest(process.env.GIGPO_TEST_ALL)
  const chosen = all || named ? long : []
  return {
    // Examples import the package by its name, as users do.
    resolve: {
      alias: [
        { find: /^gigpo$/, replacement: `${entries}/index.ts` },
        { find: /^gigpo\/([\w/-]+)$/, replacement: `${entries}/$1.ts` },
      ],
    },
    test: {
      // Only a test that hangs takes this long, even on a busy machine.
      testTimeout: 300_000,
      hookTimeout: 300_000,
      isolate: false,
      // Keeps transformed modules in node_modules for the next run, by their content.
      experimental: { fsModuleCache: true },
      setupFiles: ["test/regular-expressions.ts"],
      // A separate state folder, so that tests do not use the journal key of the user.
      env: {
        GIGPO_TEST_ALL: all ? "1" : "",
        GIGPO_STATE: join(tmpdir(), `gigpo-test-state-${userInfo().username}`),
      },
      // Projects of a group start in the order of their names, so that no long file is left for the end, when the other workers have nothing to do.
      projects: [
        {
          extends: true,
          test: {
            name: "isolated",
            include: isolated,
            exclude: chosen.length > 0 ? [] : long,
            isolate: true,
            maxWorkers: workers,
            sequence: { groupOrder: 0 },
          },
        },
        {
          extends: true,
          test: {
            name: "long",
            include: chosen,
            exclude: isolated,
            maxWorkers: workers,
            sequence: { groupOrder: 0 },
          },
        },
        {
          extends: true,
          test: {
            name: "shared",
            include: ["test/**/*.test.ts"],
            exclude: ["**/node_modules/**", ...isolated, ...device, ...long],
            maxWorkers: workers,
            sequence: { groupOrder: 0 },
          },
        },
        {
          extends: true,
          test: {
            name: "device",
            include: device,
            maxWorkers: 1,
            sequence: { groupOrder: 1 },
          },
        },
      ],
    },
  }
})
