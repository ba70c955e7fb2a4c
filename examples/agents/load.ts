/** A package of a client, as it is installed beside this file. */
export async function load(name: string) {
  return await import(/* @vite-ignore */ name)
}
