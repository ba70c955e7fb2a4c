// Archives of adapters that an engine offers: tar in its dialects, packed with gzip or not, as they are unpacked at an export.
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { downloadAdapter } from "../../../modules/engine/remote/adapter-archive.js"
import { block, padded, withChecksums } from "../../tinker/tar-blocks.mjs"
import { fixture } from "./files.mjs"

const most = 2 ** 26
const names = ["adapter_config.json", "adapter_model.safetensors"]
const end = Buffer.alloc(1024)

const [config, weights] = names.map((name) => ({ name, bytes: readFileSync(fixture(`adapters/qwen3/${name}`)) }))
const file = ({ name, bytes }) => [block({ name, size: bytes.length }), padded(bytes)]
const plain = [config, weights].flatMap(file)
const before = (type, bytes) => [block({ name: "././@LongLink", type, size: bytes.length }), padded(bytes)]
const long = `${"folder/".repeat(20)}${config.name}`
const attributes = Buffer.from(`${long.length + 10} path=${long}\n19 size=0000000009\n`)
const nine = [block({ name: "short", size: 9 }), padded(Buffer.from("{} is all"))]
const binary = Buffer.alloc(12)
binary.writeUInt8(0x80) // a number of 11 bytes follows
binary.writeUInt32BE(config.bytes.length, 8)

const archives = {
  "ours.tar": plain,
  "pax.tar": [...before("x", attributes), ...nine, ...file(weights)],
  "global.tar": [...before("g", Buffer.from("20 comment=harmless\n")), ...plain],
  "gnu.tar": [...before("L", Buffer.from(`${long}\0`)), ...nine, ...file(weights)],
  "kinds.tar": [...[..."12356S"].map((type) => block({ name: config.name, type, link: "../elsewhere" })), ...plain],
  "binary.tar": [block({ name: `../../${config.name}`, size: binary }), padded(config.bytes), ...file(weights)],
}

/** How the changed bytes of a seed become an archive. */
const forms = {
  whole: (bytes) => bytes,
  "with checksums": withChecksums,
  packed: (bytes) => gzipSync(withChecksums(bytes)),
  header: (bytes) => {
    const [size, type, name] = [bytes.subarray(0, 12), bytes.toString("latin1", 12, 13), bytes.toString("latin1", 13)]
    return Buffer.concat([...file(config), block({ name, size, type }), padded(weights.bytes), end])
  },
  attributes: (bytes) => Buffer.concat([...before("x", bytes), ...nine, ...file(weights), end]),
}

function seeds() {
  const all = Object.entries(archives).map(([name, parts]) => ({ name, bytes: Buffer.concat([...parts, end]) }))
  const size = weights.bytes.length.toString(8).padStart(12, "0")
  return [
    ...all.flatMap((one) => ["whole", "with checksums", "packed"].map((form) => ({ ...one, form }))),
    ...all.map(({ name, bytes }) => ({ name: `${name}.gz`, form: "whole", bytes: gzipSync(bytes) })),
    ...Array(8).fill({ name: "header", form: "header", bytes: Buffer.from(`${size}0${weights.name}`) }),
    ...Array(4).fill({ name: "attributes", form: "attributes", bytes: attributes }),
  ]
}

/** In pieces, as they come from a network. */
function* pieces(bytes) {
  for (let at = 0; at < bytes.length; at += 4000) yield bytes.subarray(at, at + 4000)
}

export async function prepare(scratch) {
  const into = join(scratch, "into")
  return {
    seeds: seeds(),
    async run({ form, bytes }) {
      rmSync(into, { recursive: true, force: true })
      mkdirSync(into)
      const connection = { download: async () => new Response(ReadableStream.from(pieces(forms[form](bytes)))) }
      const download = downloadAdapter(connection, "tinker://model/sampler_weights/last", into, { most })
      const [{ reason }] = await Promise.allSettled([download])
      const found = readdirSync(scratch, { recursive: true }).map(String).sort()
      const wanted = ["into", ...names.map((name) => join("into", name))]
      const strange = found.filter((name) => !wanted.includes(name))
      if (strange.length > 0) throw new Error(`Unpacking wrote ${strange.join()}`)
      const written = found.slice(1).reduce((sum, name) => sum + statSync(join(scratch, name)).size, 0)
      if (written > most) throw new Error(`Unpacking wrote ${written} bytes`)
      if (reason) throw reason
      if (found.length < wanted.length) throw new Error(`Unpacking left out one of ${names.join()}`)
    },
  }
}
