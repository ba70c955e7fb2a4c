import { open } from "node:fs/promises"
import { checkFolderOf, kindOf } from "../../files/check-new-file.ts"
import { io } from "../../files/io-error.ts"
import { GigpoError } from "../../util/errors.ts"
import { reportMark } from "./report-html.ts"

/**
 * Checks that a report can be written to a path, and that no other file is replaced. Changes nothing.
 *
 * @throws GigpoError `FILE_EXISTS`, `BAD_ARGUMENT`, `IO`
 */
export async function checkReportPath(path: string, overwrite: boolean): Promise<void> {
  await checkFolderOf(path, "the report")
  const there = await kindOf(path)
  if (there?.isDirectory())
    throw new GigpoError("FILE_EXISTS", `${path} is a folder: give the name of a file, such as report.html.`)
  if (!there || overwrite || (there.isFile() && (await isReport(path)))) return
  throw new GigpoError(
    "FILE_EXISTS",
    `${path} exists and is not a report of gigpo, so it is not replaced. Choose another name, or replace it (--overwrite).`,
  )
}

async function isReport(path: string): Promise<boolean> {
  const file = await io("open", path, open(path, "r"))
  try {
    const { bytesRead, buffer } = await io("read", path, file.read(Buffer.alloc(1024), 0, 1024, 0))
    return buffer.subarray(0, bytesRead).includes(reportMark)
  } finally {
    await file.close()
  }
}
