import type { NativePolicyOptions } from "../../engine/native/options.ts"
import { only } from "../../options/fixed.ts"
import type { Resolved } from "../../options/table.ts"
import { needsReference } from "../../training/make.ts"
import { type configFields, policyFields } from "./fields.ts"

type Keys = Resolved<typeof configFields>
type Training = Keys["training"]

/** A module of somebody's own in the place of a name: `use` is its path, its options stand beside. */
export interface Used {
  readonly use: string
  /** Of the file, so that a run knows that it goes on with the same. */
  readonly sha256?: string
  readonly [option: string]: unknown
}

/** One that ships with us. */
type Named<Part> = Extract<Part, { readonly name: string }>
/** What stands around either. */
type Around<Part> = Omit<Extract<Part, { readonly use: unknown; readonly name?: never }>, "use">

/**
 * A configuration file with every default filled in, but for the environment's own options. Paths are relative to the working
 * directory, those of modules to the file until it is loaded, and absolute then.
 */
export interface Config extends Omit<Keys, "run" | "environment" | "agent" | "training" | "sft"> {
  readonly run: string
  readonly environment: ({ readonly name: string } & Readonly<Record<string, unknown>>) | Used
  readonly agent?: Named<NonNullable<Keys["agent"]>> | (Used & Around<NonNullable<Keys["agent"]>>) | undefined
  readonly training: Omit<Training, "estimator" | "loss"> & {
    readonly estimator: Named<Training["estimator"]> | Used
    readonly loss: Named<Training["loss"]> | (Used & Around<Training["loss"]>)
  }
  readonly sft: Omit<Keys["sft"], "data" | "loss"> & {
    readonly data?: string | undefined
    readonly loss: Named<Keys["sft"]["loss"]> | Used
  }
}

/** The part that opens a policy. */
export function policyOptions(config: Config): NativePolicyOptions {
  const { lora, seed } = config
  return { ...only(config, policyFields), lora: lora && { ...lora, seed } }
}

/** The same for training, whose estimator and loss need so much: a frozen reference, say. */
export function trainingOptions(config: Config, needs: ReadonlySet<string>): NativePolicyOptions {
  return { ...policyOptions(config), reference: needsReference(needs), critic: needs.has("value") }
}
