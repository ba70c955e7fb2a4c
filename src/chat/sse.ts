/** Server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html) of an object or of a JSON text. */
export function event(data: object | string, name?: string): string {
  const line = typeof data === "string" ? onOneLine(data) : JSON.stringify(data)
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${line}\n\n`
}

/** JSON text without line breaks, which are white space in JSON and would end the data of an event or a line. */
export function onOneLine(json: string): string {
  return json.replace(/[\r\n]+/g, " ")
}
