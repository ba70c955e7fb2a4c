// PNG and JPEG files of every kind that is read, and of those that are refused.
import { readFileSync } from "node:fs"
import { decodeImage } from "../../../modules/images/decode.js"

const path = new URL("../../fixtures/images/files.json", import.meta.url)
const { decoded, refused } = JSON.parse(readFileSync(path, "utf8"))

export async function prepare() {
  return {
    seeds: [...decoded, ...refused].map(({ name, file }) => ({ name, bytes: Buffer.from(file, "base64") })),
    mayRefuse: ({ name }) => refused.some((one) => one.name === name),
    run: async ({ bytes }) => void (await decodeImage(bytes)),
  }
}
