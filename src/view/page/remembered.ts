/** What somebody chose, kept for the next time. A page that may store nothing (a file, a strict browser) goes without. */
export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`gigpo ${name}`, value)
  } catch {}
}

export function recall(name: string): string | undefined {
  try {
    return localStorage.getItem(`gigpo ${name}`) ?? undefined
  } catch {
    return undefined
  }
}
