import type { EnvironmentOptions, NamedEnvironment } from "./registry.ts"

/**
 * Opens a built-in environment. Some environments read files or build an index first.
 *
 * @throws BAD_CONFIG for an unknown name or invalid options, BAD_DATA for files that cannot be read or parsed
 */
export async function openEnvironment<Name extends string>(
  name: Name,
  options?: EnvironmentOptions<Name>,
): Promise<NamedEnvironment<Name>> {
  const { openNamed } = await import("./registry.ts")
  return await openNamed(name, options)
}
