import type { Socket } from "node:net"
import { clientAddress } from "./address.ts"

export interface ConnectionLimits {
  /** Maximum concurrent connections. */
  readonly connections: number
  /** Maximum concurrent connections of one client address. */
  readonly ofAddress: number
  /** Milliseconds that a connection without a key may wait for its first request and between requests. */
  readonly idle: number
}

/** Maximum pipelined requests of one connection. */
const mostPipelined = 64

/**
 * Connections of a server. If there is no room for another one, the longest-waiting connection without a valid key is
 * closed, else the longest-idle one. A connection with a valid key and a request in progress is never closed for
 * another; the new one is closed instead.
 */
export class Connections {
  readonly #limits: ConnectionLimits
  readonly #all = new Pool()
  readonly #byAddress = new Map<string, Pool>()
  readonly #bySocket = new WeakMap<Socket, Connection>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Accepts a new connection, or closes it. */
  add(socket: Socket): void {
    const { connections, ofAddress, idle } = this.#limits
    const address = clientAddress(socket.remoteAddress)
    const own = this.#byAddress.get(address) ?? new Pool()
    if (!own.makeRoom(ofAddress) || !this.#all.makeRoom(connections)) return void socket.destroy()
    this.#byAddress.set(address, own)
    const pools = [own, this.#all]
    const connection = new Connection(socket, address, idle, () => {
      for (const pool of pools) pool.remove(connection)
      if (own.size === 0 && this.#byAddress.get(address) === own) this.#byAddress.delete(address)
    })
    for (const pool of pools) pool.add(connection)
    connection.onChange = () => {
      for (const pool of pools) pool.change(connection)
    }
    this.#bySocket.set(socket, connection)
    socket.once("close", connection.leave)
  }

  of(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket)
  }
}

/** Connection whose requests are answered one after the other. */
export class Connection {
  /** Address of the client; see clientAddress(). */
  readonly client: string
  /** Whether a request of the connection had a valid key. */
  proven = false
  /** Whether the connection ends with the current response. */
  closing = false
  onChange = () => {}
  readonly leave: () => void
  readonly #socket: Socket
  readonly #idle: number
  #requests = 0
  #turn: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(socket: Socket, client: string, idle: number, leave: () => void) {
    this.#socket = socket
    this.client = client
    this.#idle = idle
    this.leave = () => {
      clearTimeout(this.#timer)
      leave()
    }
    this.#rest()
  }

  get busy(): boolean {
    return this.#requests > 0
  }

  prove(): void {
    this.proven = true
    this.onChange()
  }

  close(): void {
    this.leave()
    this.#socket.destroy()
  }

  /** Answers a request after those before it. */
  async take(answer: () => Promise<void>): Promise<void> {
    if (++this.#requests > mostPipelined) return this.close()
    clearTimeout(this.#timer)
    this.onChange()
    this.#turn = this.#turn
      .then(() => (this.closing || this.#socket.destroyed ? undefined : answer()))
      .catch(() => this.close()) // a response that cannot be written must not look complete
    await this.#turn
    this.#requests--
    this.onChange()
    if (!this.busy) this.#rest()
  }

  #rest(): void {
    if (this.proven || this.#socket.destroyed) return
    // After a long block of the event loop, the server first reads what has arrived.
    const late = () => setImmediate(() => this.busy || this.proven || this.close())
    this.#timer = setTimeout(late, this.#idle).unref()
  }
}

/** Connections that share a limit. */
class Pool {
  readonly #all = new Set<Connection>()
  /** Without a key, oldest first. */
  readonly #unproven = new Set<Connection>()
  /** With a key and without a request, longest idle first. */
  readonly #idle = new Set<Connection>()

  get size(): number {
    return this.#all.size
  }

  add(connection: Connection): void {
    this.#all.add(connection)
    this.change(connection)
  }

  remove(connection: Connection): void {
    for (const set of [this.#all, this.#unproven, this.#idle]) set.delete(connection)
  }

  change(connection: Connection): void {
    if (!this.#all.has(connection)) return
    if (!connection.proven) return void this.#unproven.add(connection)
    this.#unproven.delete(connection)
    if (connection.busy) this.#idle.delete(connection)
    else this.#idle.add(connection)
  }

  /** Returns false if every connection has a request in progress. */
  makeRoom(most: number): boolean {
    if (this.size < most) return true
    const [one] = this.#unproven.size > 0 ? this.#unproven : this.#idle
    one?.close()
    return one !== undefined
  }
}
