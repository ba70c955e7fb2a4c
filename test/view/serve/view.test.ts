import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { request } from "node:http"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { setTimeout as wait } from "node:timers/promises"
import { gunzipSync } from "node:zlib"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { newLock } from "../../../src/files/lock.ts"
import { GigpoError } from "../../../src/util/errors.ts"
import type { RunInfo } from "../../../src/view/data/source.ts"
import type { EpisodeReader } from "../../../src/view/serve/episode-reader.ts"
import { readPage } from "../../../src/view/serve/page-files.ts"
import { roundToSingle, sentGroup } from "../../../src/view/serve/sent-group.ts"
import { type OpenedView, openView } from "../../../src/view/serve/view.ts"
import { noBrowser } from "../browser/page.ts"
import { madeReader } from "../made-reader.ts"
import { madeGroup } from "../made-run.ts"
import { madeFolder, reportsOf } from "../run-folder.ts"

const recorded = [1, 2, 3].flatMap((iteration) => [0, 1].map((group) => madeGroup(iteration, group)))

const reports = reportsOf(6)

/** An answer, with headers that `fetch` does not let anybody choose or see. */
interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: Buffer
}

describe.skipIf(noBrowser?.includes("dist"))("the page of runs (needs dist: npm run build:ts)", () => {
  let folder: string
  let view: OpenedView
  let errors: unknown[]
  let reader: EpisodeReader
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-view-"))
    await madeFolder(
      join(folder, "runs", "one"),
      { training: { iterations: 9 }, apiKey: "hidden" },
      reports.slice(0, 4),
    )
    await madeFolder(join(folder, "runs", "two"), {}, [])
    await mkdir(join(folder, "runs", "one", "episodes"))
    errors = []
    reader = madeReader(() => recorded)
    view = await openView([join(folder, "runs")], { onError: (error) => errors.push(error) }, reader)
  })
  afterEach(async () => {
    await view.close()
    await rm(folder, { recursive: true })
  })

  const origin = () => view.url.slice(0, view.url.indexOf("/#"))
  const token = () => view.url.slice(view.url.indexOf("=") + 1)
  /** With exactly this path and these headers, besides a Host and the token unless they say otherwise. */
  const send = async (path: string, more: Record<string, string> = {}, method = "GET"): Promise<Answer> => {
    const { hostname, port, host } = new URL(origin())
    const headers = { host, authorization: `Bearer ${token()}`, ...more }
    return await new Promise((resolve, reject) => {
      const sent = request({ hostname, port, path, method, headers, setHost: false }, (response) => {
        const parts: Buffer[] = []
        response.on("data", (part: Buffer) => parts.push(part))
        response.on("error", reject)
        response.on("end", () =>
          resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(parts) }),
        )
      })
      sent.on("error", reject)
      sent.end()
    })
  }
  // biome-ignore lint/suspicious/noExplicitAny: checked by what is expected of it
  const json = async (path: string): Promise<any> => JSON.parse(String((await send(path)).body))
  const runs = (): Promise<RunInfo[]> => json("/api/runs")

  it("has an address with a token that no other has", async () => {
    expect(view.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#\/\?token=gigpo-[\w-]{43}$/)
    await using other = await openView([folder])
    expect(other.url.split("=")[1]).not.toBe(token())
  })

  it("tells of runs, what they reported and recorded, and of what comes after", async () => {
    const [one, two] = (await runs()) as [RunInfo, RunInfo]
    expect(one).toMatchObject({ name: "one", state: "stopped", iteration: 4, iterations: 9, secondsLeft: 25 })
    expect(one.settings).toMatchObject({ apiKey: "[redacted]", "training.iterations": 9 })
    expect(two).toMatchObject({ name: "two", iteration: 0 })
    const first = await json(`/api/runs/${one.id}/reports`)
    expect(first).toMatchObject({ reset: true, run: one, reports: reports.slice(0, 4) })
    await writeFile(join(folder, "runs", "one", "run.lock"), newLock("x").text)
    await writeFile(
      join(folder, "runs", "one", "metrics.jsonl"),
      reportsOf(6)
        .map((report) => `${JSON.stringify(report)}\n`)
        .join(""),
    )
    const next = await json(`/api/runs/${one.id}/reports?cursor=${first.cursor}`)
    expect(next).toMatchObject({ reset: false, run: { state: "running" }, reports: reports.slice(4) })
    const episodes = await json(`/api/runs/${one.id}/episodes`)
    expect(episodes.iteration).toHaveLength(48)
    expect(await json(`/api/runs/${one.id}/episodes?cursor=${episodes.cursor}`)).toMatchObject({
      reset: false,
      group: [],
    })
    const sent = await json(`/api/runs/${one.id}/episodes/2/1`)
    expect(sent).toEqual(JSON.parse(JSON.stringify(await sentGroup(madeGroup(2, 1), { round: roundToSingle }))))
  })

  it("is there for whoever asks, and tells nothing without the token", async () => {
    for (const [name, { type, bytes }] of await readPage()) {
      const answer = await send(`/${name}`, { authorization: "" })
      expect([answer.status, answer.headers["content-type"], answer.body.equals(bytes)]).toEqual([200, type, true])
    }
    const index = await send("/?token=abc", { authorization: "" })
    expect([index.status, index.headers.location]).toEqual([200, undefined])
    for (const given of [
      "",
      "Bearer ",
      `Bearer ${token()}x`,
      `Bearer ${token().slice(1)}`,
      `Basic ${token()}`,
      token(),
    ]) {
      for (const path of ["/api/runs", "/api/none", `/api/runs?token=${token()}`]) {
        const answer = await send(path, { authorization: given })
        expect([given, answer.status]).toEqual([given, 401])
        expect(JSON.parse(String(answer.body)).error.message).toMatch(/open the address that gigpo view printed last/)
      }
    }
    expect(errors).toEqual([])
  })

  it("gives a browser with the token a cookie that is a key, and nothing else does", async () => {
    for (const authorization of ["", `Bearer ${token()}x`])
      expect(await send("/api/session", { authorization })).toMatchObject({
        status: 401,
        headers: expect.not.objectContaining({ "set-cookie": expect.anything() }),
      })
    const { status, headers } = await send("/api/session")
    const [set] = headers["set-cookie"] as string[]
    expect([status, set]).toEqual([
      204,
      expect.stringMatching(/^gigpo-view-[\w-]{8}=gigpo-[\w-]{43}; Path=\/api\/; HttpOnly; SameSite=Strict$/),
    ])
    const [cookie] = set!.split(";") as [string]
    expect(set).not.toContain(token())
    const known = async (cookie: string) => (await send("/api/runs", { authorization: "", cookie })).status
    expect(await known(cookie)).toBe(200)
    expect(await known(`a=b; ${cookie}; c=d`)).toBe(200)
    for (const wrong of [`${cookie}x`, `x${cookie}`, cookie.split("=")[1]!, `${cookie.split("=")[0]}=`, "=", ";"])
      expect([wrong, await known(wrong)]).toEqual([wrong, 401])
    // Cookies do not distinguish ports: another server of this machine has another name.
    await using other = await openView([folder])
    const answer = await fetch(`${other.url.split("#")[0]}api/session`, {
      headers: { authorization: `Bearer ${other.url.split("=")[1]}` },
    })
    expect(answer.headers.get("set-cookie")!.split("=")[0]).not.toBe(cookie.split("=")[0])
    await expect(openView([folder], { rememberBrowsers: 1 as never })).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
  })

  it("answers no other name and no page of another origin", async () => {
    for (const host of ["evil.example", "evil.example:80", `evil.example:${new URL(origin()).port}`])
      expect((await send("/api/runs", { host })).status).toBe(421)
    for (const foreign of ["https://evil.example", "null", "http://127.0.0.1"])
      expect((await send("/api/runs", { origin: foreign })).status).toBe(403)
    expect((await send("/api/runs", { origin: origin() })).status).toBe(200)
  })

  it("is only to be read", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
      for (const path of ["/api/runs", "/"]) {
        const { status, headers, body } = await send(path, {}, method)
        expect([method, status, headers.allow]).toEqual([method, 405, "GET, HEAD"])
        expect(JSON.parse(String(body)).error.message).toMatch(/read-only/)
      }
    expect(await send("/api/runs", {}, "HEAD")).toMatchObject({ status: 200, body: Buffer.alloc(0) })
  })

  it("reads nothing by a path that somebody sends", async () => {
    const [{ id }] = (await runs()) as [RunInfo]
    const paths = [
      ...[
        "/../package.json",
        "/..%2fpackage.json",
        "/%2e%2e/package.json",
        "/etc/passwd",
        "//etc/passwd",
        "/main.js/",
        "/main.js%00",
      ],
      ...[
        "/api/",
        "/api/runs/",
        "/api/runs/../runs/x",
        "/api/runs/..%2f..%2fetc/reports",
        `/api/runs/${id}`,
        `/api/runs/${id}/`,
      ],
      ...[
        `/api/runs/${id}/metrics.jsonl`,
        `/api/runs/${id}/reports/1/2`,
        `/api/runs/${id}/reports/..%2f..`,
        "/api/runs/none/reports",
      ],
      ...[
        `/api/runs/${id}/episodes/1`,
        `/api/runs/${id}/episodes/1/-1`,
        `/api/runs/${id}/episodes/1/0x1`,
        `/api/runs/${id}/episodes/..%2f/1`,
      ],
      ...[`/api/runs/${id}/episodes/1/99`, `/api/runs/${id}/episodes/99999999999/1`, `/api/runs/__proto__/reports`],
    ]
    for (const path of paths) expect([path, (await send(path)).status]).toEqual([path, 404])
    expect(errors).toEqual([])
  })

  it("follows no link out of a run's folder", async () => {
    const [{ id }, two] = (await runs()) as [RunInfo, RunInfo]
    const secret = await madeFolder(join(folder, "secret"), {}, reportsOf(2))
    await rm(join(folder, "runs", "two", "metrics.jsonl"))
    await symlink(join(secret, "metrics.jsonl"), join(folder, "runs", "two", "metrics.jsonl"))
    expect((await send(`/api/runs/${two.id}/reports`)).status).toBe(404)
    await writeFile(join(secret, "1"), "")
    await symlink(join(secret, "1"), join(folder, "runs", "one", "episodes", "1"))
    expect((await json(`/api/runs/${id}/episodes`)).iteration).toEqual([])
    expect((await send(`/api/runs/${id}/episodes/1/0`)).status).toBe(404)
    await rm(join(folder, "runs", "one", "episodes"), { recursive: true })
    await symlink(secret, join(folder, "runs", "one", "episodes"))
    expect((await send(`/api/runs/${id}/episodes/1/0`)).status).toBe(404)
  })

  it("lets a browser load its own files and nothing else", async () => {
    for (const path of ["/", "/main.js", "/api/runs", "/none", "/api/none"]) {
      const { headers } = await send(path)
      expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /)
      expect(headers["content-security-policy"]).toMatch(
        /connect-src 'self'; .*frame-ancestors 'none'; base-uri 'none'; form-action 'none'$/,
      )
      expect(headers).toMatchObject({
        ...{ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" },
        ...{ "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin" },
      })
      expect(headers["access-control-allow-origin"]).toBeUndefined()
      expect(headers["cache-control"]).toBe(path.startsWith("/api/") || path === "/none" ? "no-store" : "no-cache")
    }
  })

  it("sends large answers compressed to whoever takes that", async () => {
    for (const [name, { bytes }] of await readPage()) {
      const { headers, body } = await send(`/${name}`, { "accept-encoding": "gzip" })
      expect([headers["content-encoding"], headers.vary, gunzipSync(body).equals(bytes)]).toEqual([
        "gzip",
        "accept-encoding",
        true,
      ])
      expect(body.length).toBeLessThan(0.6 * bytes.length)
    }
    const packed = await send("/api/runs", { "accept-encoding": "br, gzip" })
    expect(packed.headers["content-encoding"]).toBe("gzip")
    expect(JSON.parse(String(gunzipSync(packed.body)))).toEqual(await runs())
    for (const none of ["", "br", "gzip;q=0"])
      expect((await send("/api/runs", { "accept-encoding": none })).headers["content-encoding"]).toBeUndefined()
  })

  it("says that something could not be read, and why to its keeper alone", async () => {
    const [{ id }] = (await runs()) as [RunInfo]
    reader.readGroup = async () => {
      throw new Error("the secret place /x/y is broken")
    }
    const { status, body } = await send(`/api/runs/${id}/episodes/1/0`)
    expect([status, String(body)]).toEqual([500, expect.not.stringContaining("secret")])
    expect(errors).toEqual([expect.objectContaining({ message: "the secret place /x/y is broken" })])
    reader.readGroup = async () => {
      throw new GigpoError("RUN_CORRUPT", "It was cut short. Remove it.")
    }
    const broken = await json(`/api/runs/${id}/episodes/1/0`)
    expect(broken).toMatchObject({ error: { message: "It was cut short. Remove it." } })
  })

  it("stands large headers, what is no HTTP, and clients that take nothing or go", async () => {
    const { port } = new URL(origin())
    expect((await send("/", { cookie: "x".repeat(20_000) })).status).toBe(431)
    const nonsense = connect(Number(port), "127.0.0.1")
    nonsense.write("\0\r\n\r\n")
    expect(await text(nonsense)).toMatch(/^HTTP\/1.1 400 /)
    const [{ id }] = (await runs()) as [RunInfo]
    const gone = Array.from({ length: 20 }, () => {
      const socket = connect(Number(port), "127.0.0.1")
      socket.write(
        `GET /api/runs/${id}/episodes HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token()}\r\naccept-encoding: gzip\r\n\r\n`,
      )
      return socket
    })
    await Promise.all(
      gone.map(async (socket) => {
        await wait(1)
        socket.destroy()
      }),
    )
    expect(await runs()).toHaveLength(2)
    expect(errors).toEqual([])
  })
})

it("says what to do where the page was not built", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-bundle-"))
  await writeFile(join(folder, "index.html"), await readFile("src/view/page/index.html"))
  for (const place of [folder, join(folder, "none")])
    await expect(readPage(place)).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(/npm run build:ts/),
    })
  await rm(folder, { recursive: true })
})
