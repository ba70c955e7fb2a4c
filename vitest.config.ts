import { availableParallelism, tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

// Test files that use a single core run in parallel: those of TypeScript code only, and those of the command line, whose runs are small separate
// processes. The engine uses all cores, so its test files run one after the other.
const apart = [
  "algorithms",
  "bench",
  "cli",
  "credit",
  "data",
  "entries",
  "environment",
  "files",
  "fuzz",
  "hub",
  "http",
  "live",
  "loss",
  "model-files",
  "options",
  "panel",
  "path",
  "replay",
  "retrieval",
  "rollout",
  "tinker",
  "tokenizer",
  "vectors",
  "view",
]
  .map((room) => `test/${room}/**/*.test.ts`)
  .concat(
    "test/training/{curriculum,episode-shares,guards/{collapse,failures,non-finite},metrics,rows,schedule,seams,turns}.test.ts", // with an engine in TypeScript, or without an engine
    "test/runs/{checkpoint,links,options,overwritten,resumed,run,snapshot}.test.ts",
    "test/sft/expert-lengths.test.ts",
    "test/process/{exit,killed-*,memory}.test.ts", // in separate processes
    "test/engine/{check-plan,memory-plan}.test.ts",
    "test/{entries,json,kernels,package,readme,util}/*.test.ts",
    "test/{extending,json-numbers,json-pieces,json-text,layers,pace,random,raw-json}.test.ts",
  )
/** One more than cores, because some tests wait for a server or a process. */
const workers = availableParallelism() + 1
/** Test files that mock a module. They are isolated, so that no other file gets the mock. */
const replacing = ["test/environment/search/search.test.ts", "test/files/atomic-directory.test.ts"]

/**
 * Test files of more than ten seconds: faults at every write, kills, long trainings, browsers. `npm run test:all` and CI (GIGPO_TEST_ALL=1) run
 * them, `npm test` does not.
 */
const long = [
  "test/agents/process-agent.test.ts",
  "test/bench/{maze,paper}.test.ts",
  "test/cli/{cloning,commands,custom-engine,escapes,estimate,gateway,guards,interruption,lengths,links,named-options}.test.ts",
  "test/cli/{own-environment,panel,recorded-run,recording,run-state,serve,server-guards}.test.ts",
  "test/cli/{stopped-phases,trust,waiting,writing}.test.ts",
  "test/credit/hgpo.test.ts",
  "test/endpoint/{foreign-json,hostile-tools}.test.ts",
  "test/environment/{alfworld/{expert,folder,generate},cards/formula,memory/memories}.test.ts",
  "test/examples.test.ts",
  "test/files/intact.test.ts",
  "test/hub/{cli,resolve-model}.test.ts",
  "test/path/pretrained.test.ts",
  "test/process/{killed-engine,killed-writes,stopped-training}.test.ts",
  "test/rollout/{chaos,shipped-hooks}.test.ts",
  "test/runs/{links,model-links,resumed}.test.ts",
  "test/tinker/{faults,limits,lost-runs,same-script,sessions}.test.ts",
  "test/tokenizer/{hostile-text,jinja,strange-files}.test.ts",
  "test/training/{agent-runs,busy-policy,curriculum,seams}.test.ts",
  "test/view/browser/{curves,episodes-list,episodes-read,graph,real-run,served,shell}.test.ts",
  "test/view/record/hostile.test.ts",
]
const entries = fileURLToPath(new URL("src/entries", import.meta.url))

export default defineConfig(({ mode }) => {
  // A file that the command line names is run in any case.
  const all =
    mode === "all" || process.env.GIGPO_TEST_ALL === "1" || process.argv.some((word) => word.startsWith("test/"))
  const left = all ? [] : long
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
      setupFiles: ["test/regular-expressions.ts"],
      // A separate state folder, so that tests do not use the journal key of the user.
      env: {
        GIGPO_TEST_ALL: mode === "all" ? "1" : (process.env.GIGPO_TEST_ALL ?? ""),
        GIGPO_STATE: join(tmpdir(), `gigpo-test-state-${userInfo().username}`),
      },
      projects: [
        {
          extends: true,
          test: {
            name: "apart",
            include: apart,
            exclude: [...replacing, ...left],
            maxWorkers: workers,
            sequence: { groupOrder: 0 },
          },
        },
        {
          extends: true,
          test: {
            name: "replacing",
            include: replacing,
            isolate: true,
            maxWorkers: workers,
            sequence: { groupOrder: 0 },
          },
        },
        {
          extends: true,
          test: {
            name: "engine",
            include: ["test/**/*.test.ts"],
            exclude: ["**/node_modules/**", ...apart, ...left],
            maxWorkers: 1,
            sequence: { groupOrder: 1 },
          },
        },
      ],
    },
  }
})
