import { stringify } from "yaml"
import type { Config } from "./config.ts"
import { type ConfigKey, configKeys } from "./keys.ts"

/**
 * A configuration as YAML, every key with its description. Without one, the defaults; keys without a default are commented
 * out.
 */
export function renderConfig(config?: Config): string {
  const lines: string[] = []
  for (const key of configKeys) {
    if (key.path[0] === "gigpo") continue
    const indent = "  ".repeat(key.path.length - 1)
    const value = config ? valueAt(config, key.path) : key.default
    if (key.path.length === 1 && lines.length > 0) lines.push("")
    for (const line of wrap(key.description, 110 - indent.length)) lines.push(`${indent}# ${line}`)
    lines.push(...(key.group ? renderGroup(key, value, indent) : renderValue(key, value, indent)))
  }
  return `${lines.join("\n")}\n`
}

function renderValue({ path }: ConfigKey, value: unknown, indent: string): string[] {
  const name = path.at(-1)!
  return [value === undefined ? `${indent}# ${name}:` : `${indent}${name}: ${inline(value)}`]
}

/** The head of a group, and what it holds beyond the keys that are known. */
function renderGroup({ path, open, optional }: ConfigKey, value: unknown, indent: string): string[] {
  if (optional && value === undefined) return [`${indent}# ${path.at(-1)}:`]
  const known = configKeys.filter((key) => key.path.length === path.length + 1).map((key) => key.path.join("."))
  const own = open ? Object.entries((value ?? {}) as object) : []
  const more = own.filter(([name]) => !known.includes([...path, name].join(".")))
  return [`${indent}${path.at(-1)}:`, ...more.map(([name, one]) => `${indent}  ${name}: ${inline(one)}`)]
}

function inline(value: unknown): string {
  return stringify(value, { collectionStyle: "flow", lineWidth: 0 }).trim()
}

function valueAt(config: Config, path: readonly string[]): unknown {
  let value: unknown = config
  for (const key of path) value = (value as Record<string, unknown> | undefined)?.[key]
  return value
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(" ").filter((one) => one !== "")) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
