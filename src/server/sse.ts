/** Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) of JSON, each with a name or without. */
export function event(data: unknown, name?: string): string {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`
}
