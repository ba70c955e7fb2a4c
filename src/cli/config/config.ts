import type { NativePolicyOptions } from "../../engine/native/options.ts"
import { only } from "../../options/fixed.ts"
import type { ResolvedOf } from "../../options/table.ts"
import { needsReference } from "../../training/make.ts"
import { type configFields, policyFields } from "./fields.ts"

type Keys = ResolvedOf<typeof configFields>
type Training = Keys["training"]

/** Reference to a module in place of a name: path in `use`, with the module's options next to it. */
export interface Used {
  readonly use: string
  /** SHA-256 of the module's file, so that a resumed run can check that it is unchanged. */
  readonly sha256?: string
  readonly [option: string]: unknown
}

/** Built-in variant, selected by name. */
type Named<Part> = Extract<Part, { readonly name: string }>
/** Common options of built-in variants and modules. */
type Around<Part> = Omit<Extract<Part, { readonly use: unknown; readonly name?: never }>, "use">

/**
 * Configuration with every default filled in, except options of the environment. Paths are relative to the working
 * directory. Paths of modules are relative to the file until they are loaded, and absolute afterwards.
 */
export interface Config extends Omit<Keys, "run" | "environment" | "agent" | "engine" | "training" | "sft"> {
  readonly run: string
  readonly environment: ({ readonly name: string } & Readonly<Record<string, unknown>>) | Used
  readonly agent?: Named<NonNullable<Keys["agent"]>> | (Used & Around<NonNullable<Keys["agent"]>>) | undefined
  readonly engine?: Named<NonNullable<Keys["engine"]>> | Used | undefined
  readonly training: Omit<Training, "estimator" | "loss"> & {
    readonly estimator: Named<Training["estimator"]> | Used
    readonly loss: Named<Training["loss"]> | (Used & Around<Training["loss"]>)
  }
  readonly sft: Omit<Keys["sft"], "data" | "loss"> & {
    readonly data?: string | undefined
    readonly loss: Named<Keys["sft"]["loss"]> | Used
  }
}

/** Options that open a policy. */
export function policyOptions(config: Config): NativePolicyOptions {
  const { lora, seed } = config
  return { ...only(config, policyFields), lora: lora && { ...lora, seed } }
}

/** Options that open a policy for training, with what estimator and loss need, such as a reference policy. */
export function trainingOptions(config: Config, needs: ReadonlySet<string>): NativePolicyOptions {
  return { ...policyOptions(config), reference: needsReference(needs), critic: needs.has("value") }
}
