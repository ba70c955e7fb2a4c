/** Server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html) of an object or of a JSON text. */
export function event(data: object | string, name?: string): string {
  // In JSON a line break is white space; here it would end the data.
  const line = typeof data === "string" ? data.replace(/[\r\n]+/g, " ") : JSON.stringify(data)
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${line}\n\n`
}
