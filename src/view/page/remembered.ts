/** Stores a choice of the user. Does nothing where storage is not available (a file, strict browser settings). */
export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`gigpo ${name}`, value)
  } catch {}
}

/** Stored choice; undefined if there is none or storage is not available. */
export function recall(name: string): string | undefined {
  try {
    return localStorage.getItem(`gigpo ${name}`) ?? undefined
  } catch {
    return undefined
  }
}
