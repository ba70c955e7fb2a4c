import { afterEach, expect, it, vi } from "vitest"
import configOf from "../vitest.config.ts"

/** Names of the projects that run files which are not in the usual set. */
function longFiles(value: string | undefined): number {
  vi.stubEnv("GIGPO_TEST_ALL", value)
  const argv = process.argv
  process.argv = argv.filter((word) => !word.startsWith("test/"))
  try {
    const { test } = (configOf as (env: object) => { test: { projects: { test: { name: string; include: [] } }[] } })({
      mode: "test",
      command: "serve",
    })
    return test.projects.find((project) => project.test.name === "long")!.test.include.length
  } finally {
    process.argv = argv
  }
}

afterEach(() => void vi.unstubAllEnvs())

it("GIGPO_TEST_ALL=1 runs the long test files, and 0 or nothing does not", () => {
  expect(longFiles("1")).toBeGreaterThan(0)
  for (const value of ["0", "", undefined]) expect(longFiles(value)).toBe(0)
})

it.each(["true", "yes", "2", " 1"])("GIGPO_TEST_ALL=%j is rejected", (value) => {
  expect(() => longFiles(value)).toThrow(/set it to 1 to run the long test files/)
})
