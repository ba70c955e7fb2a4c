import { randomBytes } from "node:crypto"
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readlinkSync } from "node:fs"
import { chmod, open, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, describe, expect, it, vi } from "vitest"
import type { HubProgress } from "../../src/hub/progress.ts"
import { resolveModel } from "../../src/hub/resolve-model.ts"
import { contentOf, freshHub, neededFiles, neededOf, quick } from "./cache-folder.ts"
import { blobOf, commit, type Fault, sha256, someModel, token } from "./hub-server.ts"

afterEach(() => {
  vi.unstubAllEnvs()
})

const hub = (name: string, options = {}, patience = quick) => resolveModel(name, options, patience)
const failure = (code: string, ...parts: (string | RegExp)[]) =>
  expect.objectContaining({
    code,
    message: expect.toSatisfy((text: string) =>
      parts.every((part) => (typeof part === "string" ? text.includes(part) : part.test(text))),
    ),
  })

describe("a download", () => {
  it("has the layout of huggingface_hub, and only the files that are needed", async () => {
    const files = someModel()
    await using server = await freshHub({ "a/b": { files } })
    const folder = await hub("a/b")
    const root = join(server.home, "hub", "models--a--b")
    expect(folder).toBe(join(root, "snapshots", commit))
    expect(await contentOf(folder)).toEqual(neededOf(files))
    expect(await readFile(join(root, "refs", "main"), "utf8")).toBe(commit)
    for (const [name, bytes] of Object.entries(neededFiles(files)))
      expect(readlinkSync(join(folder, name))).toBe(join("..", "..", "blobs", blobOf(bytes)))
    expect((await readdir(join(root, "blobs"))).sort()).toEqual(Object.values(neededFiles(files)).map(blobOf).sort())
    expect(await readdir(join(server.home, "hub", ".locks", "models--a--b"))).toEqual([])
  })

  it("reports its size first, and then its progress", async () => {
    const files = someModel()
    await using _ = await freshHub({ "a/b": { files } })
    const told: HubProgress[] = []
    await hub("a/b", { onProgress: (progress: HubProgress) => told.push(progress) })
    const bytes = Object.values(neededFiles(files)).reduce((sum, { length }) => sum + length, 0)
    expect(told[0]).toEqual({ kind: "start", model: `a/b@${commit}`, files: 4, bytes, missing: bytes })
    const done = told.flatMap((one) => (one.kind === "bytes" ? [one.done] : []))
    expect(done).toEqual(done.toSorted((a, b) => a - b))
    expect(done.at(-1)).toBe(bytes)
  })

  it("is not done again", async () => {
    await using server = await freshHub({ "a/b": { files: someModel() } })
    const folder = await hub("a/b")
    server.asked.length = 0
    expect(await hub("a/b")).toBe(folder)
    expect(server.asked.map(({ path }) => path)).toEqual(["/api/models/a/b/revision/main?blobs=true"])
    server.asked.length = 0
    expect(await hub(`a/b@${commit}`)).toBe(folder)
    expect(server.asked).toEqual([])
  })

  it("downloads the files of a newer commit, and shares equal ones", async () => {
    const files = someModel()
    await using server = await freshHub({ "a/b": { files } })
    await hub("a/b")
    const changed = { ...files, "config.json": Buffer.from('{"model_type":"other"}') }
    server.repositories["a/b"] = { files: changed, revisions: { main: "d".repeat(40) } }
    server.asked.length = 0
    const folder = await hub("a/b")
    expect(folder).toMatch(/snapshots\/d{40}$/)
    expect(await contentOf(folder)).toEqual(neededOf(changed))
    expect(server.asked.map(({ to }) => to)).toEqual(["hub", "hub"])
    expect(await hub(`a/b@${commit}`)).toMatch(/snapshots\/c{40}$/)
  })

  it("of configuration and tokenizer leaves the weights for later", async () => {
    const files = someModel()
    await using _ = await freshHub({ "a/b": { files } })
    const folder = await hub("a/b", { weights: false })
    const { "model.safetensors": __, ...small } = neededOf(files)
    expect(await contentOf(folder)).toEqual(small)
    expect(await hub(`a/b@${commit}`)).toBe(folder)
    expect(await contentOf(folder)).toEqual(neededOf(files))
  })

  it("takes revisions with slashes, templates, shards, and no second copy of the weights", async () => {
    const files = {
      ...{ "config.json": "{}", "model.safetensors.index.json": '{"weight_map":{"x":"model-1.safetensors"}}' },
      ...{ "model-1.safetensors": "x", "consolidated.safetensors": "y", "chat_template.jinja": "t", "merges.txt": "m" },
      ...{
        "vocab.json": "{}",
        "tokenizer.model": "k",
        "additional_chat_templates/tool_use.jinja": "u",
        "notes.txt": "n",
      },
    }
    await using _ = await freshHub({ "a/b": { files, revisions: { "refs/pr/1": commit } } })
    const { "consolidated.safetensors": __, "notes.txt": ___, ...needed } = files
    const found = await contentOf(await hub("a/b@refs/pr/1"))
    expect(Object.keys(found).sort()).toEqual(Object.keys(needed).sort())
    vi.stubEnv("HF_HUB_OFFLINE", "1")
    expect(await hub("a/b@refs/pr/1")).toMatch(/c{40}$/)
  })

  it("reads sizes and digests from headers where a mirror's listing has none", async () => {
    const files = someModel()
    await using _ = await freshHub({ "a/b": { files, bare: true } })
    expect(await contentOf(await hub("a/b"))).toEqual(neededOf(files))
  })

  it("repairs a blob of another size, and rejects a link that leads elsewhere", async () => {
    const files = someModel()
    await using server = await freshHub({ "a/b": { files } })
    const folder = await hub("a/b")
    await truncate(join(server.home, "hub", "models--a--b", "blobs", sha256(files["model.safetensors"]!)), 100)
    expect(await contentOf(await hub("a/b"))).toEqual(neededOf(files))
    await rm(join(folder, "config.json"))
    await writeFile(join(server.home, "secret"), "secret")
    await symlink(join(server.home, "secret"), join(folder, "config.json"))
    await expect(hub("a/b")).rejects.toEqual(failure("UNSAFE_PATH", "is a link"))
    expect(await readFile(join(server.home, "secret"), "utf8")).toBe("secret")
  })

  it("writes into no folder that is a link", async () => {
    await using server = await freshHub({ "a/b": { files: someModel() } })
    const [root, other] = [join(server.home, "hub", "models--a--b"), mkdtempSync(join(tmpdir(), "gigpo-other-"))]
    mkdirSync(root, { recursive: true })
    await symlink(other, join(root, "blobs"))
    await expect(hub("a/b")).rejects.toEqual(failure("UNSAFE_PATH", "blobs is a link"))
    expect(await readdir(other)).toEqual([])
  })
})

describe("GGUF files", () => {
  const files = {
    ...{ "b-Q4_K_M.gguf": randomBytes(3000), "b-Q8_0.gguf": randomBytes(3000), "mmproj-b-F16.gguf": randomBytes(1200) },
    ...{ "F16/b-F16-00001-of-00002.gguf": randomBytes(1500), "F16/b-F16-00002-of-00002.gguf": randomBytes(1500) },
  }

  it.each([
    ["a/b:Q4_K_M", "b-Q4_K_M.gguf", 1],
    ["a/b:q8_0", "b-Q8_0.gguf", 1],
    ["a/b/b-Q8_0.gguf", "b-Q8_0.gguf", 1],
    ["a/b@main:F16", "F16/b-F16-00001-of-00002.gguf", 2],
    ["a/b/F16/b-F16-00001-of-00002.gguf", "F16/b-F16-00001-of-00002.gguf", 2],
  ])("%s is the one file, with its parts", async (name, file, count) => {
    await using server = await freshHub({ "a/b": { files } })
    const path = await hub(name)
    const snapshot = join(server.home, "hub", "models--a--b", "snapshots", commit)
    expect(path).toBe(join(snapshot, file))
    expect((await readFile(path)).equals(files[file as keyof typeof files])).toBe(true)
    expect(Object.keys(await contentOf(snapshot))).toHaveLength(count)
    vi.stubEnv("HF_HUB_OFFLINE", "1")
    expect(await hub(name)).toBe(path)
  })

  it("are listed where none or an unknown one is named", async () => {
    await using _ = await freshHub({ "a/b": { files } })
    await expect(hub("a/b")).rejects.toEqual(
      failure("HUB_REJECTED", "several GGUF files", "a/b:b-Q4_K_M.gguf", "b-Q8_0.gguf (0 MiB)"),
    )
    await expect(hub("a/b:Q2_K")).rejects.toEqual(
      failure("HUB_REJECTED", "no GGUF file matching the name Q2_K", "b-Q8_0.gguf"),
    )
    await expect(hub("a/b:b")).rejects.toEqual(failure("HUB_REJECTED", "several GGUF files matching the name b"))
  })

  it("that is alone needs no name; a part that is missing is reported", async () => {
    await using server = await freshHub({ "a/b": { files: { "x.gguf": "x", "README.md": "" } } })
    expect(await hub("a/b")).toMatch(/x\.gguf$/)
    server.repositories["a/b"] = { files: { "x-00001-of-00003.gguf": "x", "x-00002-of-00003.gguf": "y" } }
    await expect(hub("a/b:x")).rejects.toEqual(failure("HUB_REJECTED", "2 of the 3 parts"))
  })
})

it("rejects pickle files, and a repository without weights, with a list of its files", async () => {
  await using _ = await freshHub({
    "a/pickle": { files: { "config.json": "{}", "pytorch_model.bin": "x", "b.pt": "x" } },
    "a/none": { files: { "README.md": "x" } },
  })
  await expect(hub("a/pickle")).rejects.toEqual(
    failure("HUB_REJECTED", "weights only in pickle files", "pytorch_model.bin (0 MiB), b.pt"),
  )
  await expect(hub("a/none")).rejects.toEqual(
    failure("HUB_REJECTED", "no weights in safetensors or GGUF files: README.md"),
  )
})

describe("local folders take precedence", () => {
  it("over a name, and that is reported where the cache has a model of this name", async () => {
    await using server = await freshHub({ "test/hub": { files: someModel() } })
    const notes: string[] = []
    const onProgress = (progress: HubProgress) => progress.kind === "note" && notes.push(progress.text)
    expect(await hub("test/hub", { onProgress })).toBe("test/hub")
    expect([notes, server.asked]).toEqual([[], []])
    await hub("test/hub@main")
    expect(await hub("test/hub", { onProgress })).toBe("test/hub")
    expect(notes).toEqual(["The local path test/hub is used, not the model of this name on the Hugging Face Hub."])
  })

  it("and the name of a missing folder is not sent to the Hub, unless a revision shows that it is a name", async () => {
    await using server = await freshHub({ "test/none": { files: someModel() } })
    expect(await hub("test/none")).toBe("test/none")
    expect(await hub("/test/none/at/all")).toBe("/test/none/at/all")
    expect(server.asked).toEqual([])
    expect(await hub("test/none@main")).toMatch(/c{40}$/)
  })
})

describe("the environment", () => {
  it.each([
    ["HF_HUB_CACHE", "", "models--a--b"],
    ["HF_HOME", "", "hub/models--a--b"],
    ["XDG_CACHE_HOME", "HF_HOME", "huggingface/hub/models--a--b"],
  ])("%s says where the cache is", async (name, unset, place) => {
    await using _ = await freshHub({ "a/b": { files: someModel() } })
    if (unset) vi.stubEnv(unset, "")
    const folder = mkdtempSync(join(tmpdir(), "gigpo-hub-"))
    vi.stubEnv(name, folder)
    expect(await hub("a/b")).toBe(join(folder, place, "snapshots", commit))
  })

  it.each(["ftp://x", "https://user:password@x", "https://x?y", "nonsense"])(
    "HF_ENDPOINT %s is rejected",
    async (address) => {
      vi.stubEnv("HF_ENDPOINT", address)
      await expect(hub("a/b")).rejects.toEqual(failure("BAD_ARGUMENT", /^HF_ENDPOINT must(?!.*password@)/))
    },
  )

  it("HF_TOKEN that cannot be one is rejected, and not shown", async () => {
    await using _ = await freshHub({ "a/b": { files: someModel() } })
    vi.stubEnv("HF_TOKEN", "hf_se cret")
    await expect(hub("a/b")).rejects.toEqual(failure("BAD_ARGUMENT", /^HF_TOKEN is not a valid access token(?!.*cret)/))
  })
})

describe("the token", () => {
  it.each(["HF_TOKEN", "the file"])("of %s goes to the endpoint alone", async (from) => {
    await using server = await freshHub({ "a/b": { files: someModel(), access: "private" } })
    if (from === "HF_TOKEN") vi.stubEnv("HF_TOKEN", token)
    else await writeFile(join(server.home, "token"), `${token}\n`)
    await hub("a/b")
    const sent = (to: string) => server.asked.filter((one) => one.to === to).map(({ headers }) => headers.authorization)
    expect(new Set(sent("hub"))).toEqual(new Set([`Bearer ${token}`]))
    expect(sent("store").length).toBeGreaterThan(0)
    expect(new Set(sent("store"))).toEqual(new Set([undefined]))
    for (const name of await readdir(join(server.home, "hub"), { recursive: true }))
      if (lstatSync(join(server.home, "hub", name)).isFile())
        expect((await readFile(join(server.home, "hub", name))).includes(token)).toBe(false)
  })

  it("is not sent over plain http beyond this machine", async () => {
    const fetched = vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("{}", { status: 404 }))
    try {
      for (const [endpoint, sent] of [
        ["http://hub.example", undefined],
        ["https://hub.example", `Bearer ${token}`],
        ["http://127.0.0.1:9", `Bearer ${token}`],
      ] as const) {
        vi.stubEnv("HF_ENDPOINT", endpoint)
        vi.stubEnv("HF_TOKEN", token)
        vi.stubEnv("HF_HOME", mkdtempSync(join(tmpdir(), "gigpo-hub-")))
        await expect(hub("a/b")).rejects.toBeDefined()
        expect((fetched.mock.lastCall![1]!.headers as Record<string, string>).authorization).toBe(sent)
      }
    } finally {
      fetched.mockRestore()
    }
  })

  it.each([
    ["http://store.example/x", "a redirect to an address without https"],
    ["ftp://127.0.0.1/x", "a redirect to an address without https"],
    ["file:///etc/passwd", "a redirect to an address without https"],
  ])("nor is a redirect to %s followed", async (location, sentence) => {
    await using server = await freshHub({ "a/b": { files: someModel() } })
    server.redirect = () => location
    await expect(hub("a/b")).rejects.toEqual(failure("HUB_REJECTED", sentence))
  })

  it("ends redirects that never end", async () => {
    await using server = await freshHub({ "a/b": { files: someModel() } })
    server.redirect = () => `/a/b/resolve/${commit}/model.safetensors`
    await expect(hub("a/b")).rejects.toEqual(failure("HUB_REJECTED", "more than 5 redirects"))
  })
})

describe("errors", () => {
  it("of a model that is not there suggest one in the cache", async () => {
    await using _ = await freshHub({ "Qwen/Qwen3-0.6B": { files: someModel() } })
    await hub("Qwen/Qwen3-0.6B")
    await expect(hub("qwen/Qwen3-06B")).rejects.toEqual(
      failure("HUB_REJECTED", "no model of this name", "or it is private", "Did you mean Qwen/Qwen3-0.6B"),
    )
    vi.stubEnv("HF_TOKEN", token)
    await expect(hub("other/name")).rejects.toEqual(failure("HUB_REJECTED", /no model of this name(?!.*Did you mean)/))
  })

  it("of a gated model explain how to get access", async () => {
    await using server = await freshHub({ "a/b": { files: someModel(), access: "gated" } })
    await expect(hub("a/b")).rejects.toEqual(
      failure("HUB_REJECTED", "is gated", `${server.url}/a/b`, `${server.url}/settings/tokens`, "HF_TOKEN"),
    )
    vi.stubEnv("HF_TOKEN", token)
    expect(await hub("a/b")).toMatch(/c{40}$/)
  })

  it("of an invalid token do not contain it", async () => {
    await using _ = await freshHub({ "a/b": { files: someModel() } })
    vi.stubEnv("HF_TOKEN", "hf_wrong")
    await expect(hub("a/b")).rejects.toEqual(
      failure("HUB_REJECTED", /rejects the access token from HF_TOKEN(?!.*hf_wrong)/),
    )
  })

  it("of a revision that is not there", async () => {
    await using server = await freshHub({ "a/b": { files: someModel() } })
    await expect(hub("a/b@v9")).rejects.toEqual(
      failure("HUB_REJECTED", "has no revision v9", `${server.url}/a/b/tree/main`),
    )
  })

  it("without a network, and with a cache", async () => {
    const server = await freshHub({ "a/b": { files: someModel() } })
    const folder = await hub("a/b")
    await server[Symbol.asyncDispose]()
    const notes: string[] = []
    const onProgress = (progress: HubProgress) => progress.kind === "note" && notes.push(progress.text)
    expect(await hub("a/b", { onProgress })).toBe(folder)
    expect(notes).toEqual([expect.stringMatching(/refuses the connection\. a\/b@c{40} from the cache is used\.$/)])
    await expect(hub("a/c")).rejects.toEqual(failure("HUB_LOST", "refuses the connection"))
    vi.stubEnv("HF_ENDPOINT", "https://nowhere.invalid")
    await expect(hub("a/c")).rejects.toEqual(failure("HUB_LOST", "nowhere.invalid"))
  })

  it("offline", async () => {
    await using server = await freshHub({ "a/b": { files: someModel() } })
    vi.stubEnv("HF_HUB_OFFLINE", "1")
    await expect(hub("a/b")).rejects.toEqual(failure("HUB_REJECTED", "not in the cache", "HF_HUB_OFFLINE"))
    expect(server.asked).toEqual([])
    vi.stubEnv("HF_HUB_OFFLINE", "0")
    const folder = await hub("a/b")
    vi.stubEnv("HF_HUB_OFFLINE", "ON")
    server.asked.length = 0
    expect(await hub("a/b")).toBe(folder)
    expect(server.asked).toEqual([])
    await rm(join(folder, "model.safetensors"))
    await expect(hub("a/b")).rejects.toEqual(failure("HUB_REJECTED", "or incomplete"))
  })

  it("of a model that is now rejected mention the cached one", async () => {
    await using server = await freshHub({ "a/b": { files: someModel() } })
    await hub("a/b")
    delete server.repositories["a/b"]
    await expect(hub("a/b")).rejects.toEqual(
      failure("HUB_REJECTED", `The cache has the commit ${commit}: set HF_HUB_OFFLINE=1`),
    )
  })

  it("of a server in trouble come after retries", async () => {
    const files = someModel()
    await using server = await freshHub({ "a/b": { files } })
    server.fault = () => "500"
    await expect(hub("a/b", {}, { ...quick, tries: 3 })).rejects.toEqual(
      failure("HUB_LOST", "answers with an error (500)"),
    )
    expect(server.asked).toHaveLength(3)
    // Each address fails once, in one way after another.
    const failed = new Set<string>()
    server.fault = ({ to, path }) => {
      if (failed.has(`${to} ${path}`)) return undefined
      failed.add(`${to} ${path}`)
      return (["500", "429", "cut", "half"] as const)[failed.size % 4]
    }
    server.asked.length = 0
    expect(await contentOf(await hub("a/b", {}, { ...quick, tries: 5 }))).toEqual(neededOf(files))
  })

  it("wait as long as the server requests, with a message", async () => {
    const files = someModel()
    await using server = await freshHub({ "a/b": { files } })
    const [waits, notes]: [number[], string[]] = [[], []]
    const sleep = async (milliseconds: number) => void waits.push(milliseconds)
    const onProgress = (progress: HubProgress) => progress.kind === "note" && notes.push(progress.text)
    const patience = { ...quick, tries: 4, sleep }
    server.retryAfter = "17"
    server.fault = ({ to }, index) => (index === 0 ? "429" : to === "store" && waits.length === 1 ? "503" : undefined)
    expect(await contentOf(await hub("a/b", { onProgress }, patience))).toEqual(neededOf(files))
    expect(waits.slice(0, 2)).toEqual([17_000, 17_000])
    expect(notes[0]).toMatch(/limits the number of requests \(429\), and asks to wait 17 s\. Waiting\.$/)
    expect(notes[1]).toMatch(/answers with an error \(503\), and asks to wait 17 s\. Waiting\.$/)
    server.fault = () => "429"
    for (const [asked, expected] of [
      [new Date(Date.now() + 3_600_000).toUTCString(), []],
      ["301", []],
      ["soon", [1, 2, 4]],
      [new Date(0).toUTCString(), [1, 2, 4]],
    ] as const) {
      waits.length = 0
      server.retryAfter = asked
      await expect(hub("a/c", {}, patience)).rejects.toEqual(failure("HUB_LOST", "limits the number of requests (429)"))
      expect(waits).toEqual(expected)
    }
  })

  it("of a server that falls silent", async () => {
    const files = someModel()
    await using server = await freshHub({ "a/b": { files } })
    server.fault = ({ to }) => (to === "store" ? "stall" : undefined)
    await expect(hub("a/b", {}, { ...quick, silence: 200 })).rejects.toEqual(
      failure("HUB_LOST", "sent nothing for 0.2 s"),
    )
    server.fault = undefined
    expect(await contentOf(await hub("a/b"))).toEqual(neededOf(files))
  })
})

describe("a fault at every request", () => {
  const files = someModel(60_000)
  /** Requests of a download without faults, in the order of their paths: files come side by side. */
  const kinds: readonly Fault[] = ["cut", "500", "short", "half", "wrong", "long", "404"]
  it.each(kinds)("%s: the first call fails, and the second completes", async (kind) => {
    await using probe = await freshHub({ "a/b": { files } })
    await hub("a/b")
    const paths = probe.asked.map(({ to, path }) => `${to} ${path}`)
    expect(paths).toHaveLength(7) // listing, four files, two redirects
    for (const at of paths) {
      await using server = await freshHub({ "a/b": { files } })
      let faults = 0
      const isSame = (to: string, path: string) => `${to} ${path}` === at
      server.fault = ({ to, path }) => (isSame(to, path) && faults++ === 0 ? kind : undefined)
      const first = await hub("a/b").then(
        () => undefined,
        (error) => error,
      )
      const isRedirect = at.startsWith("hub") && /resolve.*(model|tokenizer)\.(safetensors|json)$/.test(at)
      const harmless = isRedirect && ["short", "half", "wrong", "long"].includes(kind)
      if (!harmless) expect([first?.code, at]).toEqual([expect.stringMatching(/^HUB_(LOST|REJECTED)$/), at])
      expect(await contentOf(await hub("a/b"))).toEqual(neededOf(files))
      const blobs = await readdir(join(server.home, "hub", "models--a--b", "blobs"))
      expect(blobs.filter((name) => name.includes("incomplete"))).toEqual([])
    }
  })

  it("continues where the first call broke off", async () => {
    await using server = await freshHub({ "a/b": { files } })
    await hub("a/b", { weights: false })
    server.fault = ({ to, path }) =>
      to === "store" && path.includes(sha256(files["model.safetensors"]!)) ? "stall" : undefined
    await expect(hub("a/b", {}, { ...quick, silence: 500 })).rejects.toEqual(failure("HUB_LOST"))
    server.fault = undefined
    server.asked.length = 0
    const told: HubProgress[] = []
    await hub("a/b", { onProgress: (progress: HubProgress) => told.push(progress) })
    expect(server.asked.filter(({ to }) => to === "store").map(({ headers }) => headers.range)).toEqual([
      "bytes=30000-",
    ])
    expect(told[0]).toMatchObject({ kind: "start", missing: 30_000 })
  })

  it("restarts if the partial file belongs to another one, or is longer", async () => {
    for (const left of [randomBytes(30_000), randomBytes(60_000), randomBytes(70_000)]) {
      await using server = await freshHub({ "a/b": { files } })
      const blobs = join(server.home, "hub", "models--a--b", "blobs")
      mkdirSync(blobs, { recursive: true })
      await writeFile(join(blobs, `${sha256(files["model.safetensors"]!)}.gigpo.incomplete`), left)
      expect(await contentOf(await hub("a/b"))).toEqual(neededOf(files))
    }
  })

  it("keeps nothing of a file with another digest, or one that is longer", async () => {
    for (const [kind, sentence] of [
      ["wrong", "the digest of model.safetensors differs from its listing"],
      ["long", "is longer than the 60000 bytes"],
    ] as const) {
      await using server = await freshHub({ "a/b": { files } })
      const path = sha256(files["model.safetensors"]!)
      server.fault = (asked) => (asked.to === "store" && asked.path.includes(path) ? kind : undefined)
      await expect(hub("a/b")).rejects.toEqual(failure("HUB_REJECTED", sentence))
      const blobs = join(server.home, "hub", "models--a--b", "blobs")
      const left = (await readdir(blobs)).filter((name) => name.startsWith(path))
      for (const name of left) expect(lstatSync(join(blobs, name)).size).toBe(0)
    }
  })
})

it("stops when it is aborted, and continues later", async () => {
  const files = someModel()
  await using server = await freshHub({ "a/b": { files } })
  const weights = sha256(files["model.safetensors"]!)
  server.fault = ({ path }) => (path.includes(weights) ? "stall" : undefined)
  const controller = new AbortController()
  const reason = new Error("enough")
  const onProgress = (progress: HubProgress) => {
    if (progress.kind === "bytes" && progress.done >= progress.total - 150_000) controller.abort(reason)
  }
  await expect(hub("a/b", { signal: controller.signal, onProgress })).rejects.toBe(reason)
  server.fault = undefined
  server.asked.length = 0
  expect(await contentOf(await hub("a/b"))).toEqual(neededOf(files))
  expect(server.asked.filter(({ to }) => to === "store").map(({ headers }) => headers.range)).toContain("bytes=150000-")
  await expect(hub("a/b@other", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
})

it("keeps downloaded data when the disk is full, and continues from there", async () => {
  const files = someModel()
  await using server = await freshHub({ "a/b": { files } })
  await hub("a/b", { weights: false })
  const handle = await open(join(server.home, "probe"), "w")
  await handle.close()
  const original = Object.getPrototypeOf(handle).write
  const spy = vi.spyOn(Object.getPrototypeOf(handle), "write").mockImplementation(function (
    this: unknown,
    ...given: unknown[]
  ) {
    if (Number(given[3]) < 100_000) return original.apply(this, given)
    return Promise.reject(Object.assign(new Error("no space"), { code: "ENOSPC", syscall: "write" }))
  })
  try {
    await expect(hub("a/b")).rejects.toEqual(failure("IO", "the disk is full; free some space and try again"))
  } finally {
    spy.mockRestore()
  }
  server.asked.length = 0
  expect(await contentOf(await hub("a/b"))).toEqual(neededOf(files))
  expect(server.asked.find(({ to }) => to === "store")?.headers.range).toMatch(/^bytes=\d{5,6}-$/)
})

it.skipIf(process.getuid?.() === 0)("reads a cache that it cannot write into", async () => {
  await using server = await freshHub({ "a/b": { files: someModel() } })
  const folder = await hub("a/b")
  const refs = join(server.home, "hub", "models--a--b", "refs")
  await rm(join(refs, "main"))
  await chmod(refs, 0o500)
  expect(await hub("a/b")).toBe(folder)
  expect(existsSync(join(refs, "main"))).toBe(false)
})
