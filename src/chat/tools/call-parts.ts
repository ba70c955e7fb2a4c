/** Part of a tool call: the beginning with its name, and some text of its arguments. */
export interface CallPart {
  /** Name of the tool, in the first part of a call. */
  readonly name?: string
  /** Text of the arguments, as written. */
  readonly text: string
  /** Whether the arguments end with this part. */
  readonly last?: true
}

/**
 * Reader of the arguments of consecutive calls while they are written. Only for texts of the grammar of `calling`: text that is not a call in
 * the end would have been reported already.
 */
export class CallParts {
  readonly #header: RegExp
  /** Text up to the arguments of the current call, as far as it was read. */
  #head = ""
  /** Open braces and brackets within the arguments; undefined before them. */
  #depth: number | undefined
  #quoted = false
  #escaped = false
  /** Number of calls that have begun. */
  count = 0

  constructor(key: "arguments" | "parameters") {
    this.#header = new RegExp(`^[^{]*\\{"name": ?("(?:[^"\\\\]|\\\\.)*"), ?"${key}": ?(?=\\{)`)
  }

  /** Whether the arguments of a call have begun and not ended. */
  get open(): boolean {
    return this.#depth !== undefined
  }

  read(text: string): CallPart[] {
    const parts: CallPart[] = []
    for (let rest = text; rest !== ""; ) {
      let name: string | undefined
      if (this.#depth === undefined) {
        this.#head += rest
        const header = this.#header.exec(this.#head)
        if (!header) break
        name = JSON.parse(header[1]!) as string
        rest = this.#head.slice(header[0].length)
        ;[this.#head, this.#depth] = ["", 0]
        this.count++
      }
      const end = this.#end(rest)
      const given = rest.slice(0, end)
      const last = this.#depth === 0
      if (last) this.#depth = undefined
      parts.push({ ...(name !== undefined && { name }), text: given, ...(last && { last }) })
      rest = rest.slice(given.length)
    }
    return parts
  }

  /** Position in the text after the end of the arguments; undefined if they go beyond it. */
  #end(text: string): number | undefined {
    for (let at = 0; at < text.length; at++) {
      const char = text[at]!
      if (this.#escaped) this.#escaped = false
      else if (this.#quoted && char === "\\") this.#escaped = true
      else if (char === '"') this.#quoted = !this.#quoted
      else if (!this.#quoted && (char === "{" || char === "[")) this.#depth!++
      else if (!this.#quoted && (char === "}" || char === "]") && --this.#depth! === 0) return at + 1
    }
    return undefined
  }
}
