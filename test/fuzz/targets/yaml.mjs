// Configuration files, YAML and JSON, up to where modules would be loaded.
import { readFileSync } from "node:fs"
import { parseConfigDocument } from "../../../modules/cli/config/document.js"
import { resolveDocument } from "../../../modules/cli/config/resolve.js"

const examples = ["alfworld", "gateway", "search", "sokoban", "sql", "webshop", "number-line"]

export async function prepare() {
  const seeds = examples.map((name) => ({
    name,
    bytes: readFileSync(new URL(`../../../examples/${name}.yaml`, import.meta.url)),
  }))
  return {
    seeds: [
      ...seeds,
      {
        name: "json",
        bytes: Buffer.from(
          '{"model": "runs/model", "environment": {"name": "sokoban"}, "training": {"iterations": 3}}',
        ),
      },
    ],
    run: ({ bytes }) => void resolveDocument(parseConfigDocument(bytes.toString("utf8"), "config.yaml")),
  }
}
