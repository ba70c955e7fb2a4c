import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { hubNameOf, parseHubName, repositoryOf } from "../../src/hub/names.ts"

const commit = "0123456789abcdef0123456789abcdef01234567"

describe("a name on the Hub", () => {
  it.each([
    ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", undefined, undefined],
    ["Qwen/Qwen3-0.6B@main", "Qwen/Qwen3-0.6B", "main", undefined],
    ["a/b@refs/pr/1", "a/b", "refs/pr/1", undefined],
    [`a/b@${commit}`, "a/b", commit, undefined],
    ["a/b-GGUF:Q4_K_M", "a/b-GGUF", undefined, "Q4_K_M"],
    ["a/b-GGUF@v1:Q4_K_M", "a/b-GGUF", "v1", "Q4_K_M"],
    ["a/b-GGUF/b-Q8_0.gguf", "a/b-GGUF", undefined, "b-Q8_0.gguf"],
    ["a/b-GGUF/Q8/b-00001-of-00002.gguf", "a/b-GGUF", undefined, "Q8/b-00001-of-00002.gguf"],
    ["a/b-GGUF@main:Q8/b.gguf", "a/b-GGUF", "main", "Q8/b.gguf"],
  ])("%s is read", (text, repository, revision, gguf) => {
    expect(parseHubName(text)).toEqual({ repository, revision, gguf })
  })

  it.each([
    ...[
      "gpt2",
      "/a/b",
      "./a/b",
      "../b",
      "a/..",
      "a/b/c",
      "a\\b",
      "C:\\a/b",
      "a/b@../../x",
      "a/b:../x.gguf",
      "a/b/../x.gguf",
    ],
    ...[
      "a/b@",
      "a/b:",
      "a/b\n",
      "a//b",
      "a--b/../c",
      "models/x.gguf",
      "a/config.json",
      "-a/b",
      "a/b@x//y",
      "a/b@./c",
      "~/b",
      "",
    ],
  ])("%j is none", (text) => {
    expect(parseHubName(text)).toBeUndefined()
  })

  it("takes time linear in the length of a text", () => {
    const begun = performance.now()
    for (const text of ["a-".repeat(100_000), `a/${"b.".repeat(100_000)}`, `a/b@${"c/".repeat(100_000)}`])
      parseHubName(text)
    expect(performance.now() - begun).toBeLessThan(500)
  })
})

it("reads name and commit only from a path in the cache", () => {
  const snapshot = join("/cache", "models--a--b-c", "snapshots", commit)
  expect(hubNameOf(snapshot)).toBe(`a/b-c@${commit}`)
  expect(hubNameOf(join(snapshot, "x.gguf"))).toBe(`a/b-c@${commit}:x.gguf`)
  expect(hubNameOf(join("/cache", "models--a--b", "snapshots", "main"))).toBeUndefined()
  expect(hubNameOf(join("/cache", "datasets--a--b", "snapshots", commit))).toBeUndefined()
  expect(hubNameOf("/home/me/model")).toBeUndefined()
  expect(repositoryOf("models--a--b--c")).toBeUndefined()
})
