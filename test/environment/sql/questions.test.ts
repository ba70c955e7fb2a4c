import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { expect, it, onTestFinished } from "vitest"
import { readQuestions } from "../../../src/environment/sql/questions.ts"

it("rejects once for a question with two errors, without an unhandled rejection", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-questions-"))
  onTestFinished(() => rm(folder, { recursive: true }))
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on("unhandledRejection", note)
  onTestFinished(() => void process.off("unhandledRejection", note))
  const path = join(folder, "questions.json")
  for (const wrong of [{ db_id: "no/name" }, { db_id: "absent", question: "How many?" }]) {
    await writeFile(path, JSON.stringify([wrong]))
    await expect(readQuestions(path, folder)).rejects.toMatchObject({ code: "BAD_DATA" })
  }
  await wait(20)
  expect(unhandled).toEqual([])
})
