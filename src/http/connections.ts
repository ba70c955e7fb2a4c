import type { Socket } from "node:net"
import { clientAddress } from "./address.ts"

export interface ConnectionLimits {
  /** Connections at once. */
  readonly connections: number
  /** Connections of one client's address at once. */
  readonly ofAddress: number
  /** Milliseconds that a connection without a key may wait: for its first request, and between two. */
  readonly idle: number
}

/** Requests of one connection that may wait for the answer of the first. */
const mostPipelined = 64

/**
 * Connections of a server. Where there is no room for another, the one that has waited longest without having shown a key makes room;
 * else the one that has been idle longest. A connection whose request is being answered for the holder of a key is never closed for
 * another: then the new one is.
 */
export class Connections {
  readonly #limits: ConnectionLimits
  readonly #all = new Pool()
  readonly #byAddress = new Map<string, Pool>()
  readonly #bySocket = new WeakMap<Socket, Connection>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Takes a new connection, or closes it. */
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

/** One connection, whose requests are answered one after the other. */
export class Connection {
  /** Address of the client; see clientAddress(). */
  readonly client: string
  /** Whether a request of it had a key of the server. */
  proven = false
  /** Whether it ends with the answer at hand. */
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

  /** Answers a request once those before it are answered. */
  async take(answer: () => Promise<void>): Promise<void> {
    if (++this.#requests > mostPipelined) return this.close()
    clearTimeout(this.#timer)
    this.onChange()
    this.#turn = this.#turn
      .then(() => (this.closing || this.#socket.destroyed ? undefined : answer()))
      .catch(() => this.close()) // an answer that cannot be written must not look whole
    await this.#turn
    this.#requests--
    this.onChange()
    if (!this.busy) this.#rest()
  }

  #rest(): void {
    if (this.proven || this.#socket.destroyed) return
    // A server that was busy for so long first reads what has come in the meantime.
    const late = () => setImmediate(() => this.busy || this.proven || this.close())
    this.#timer = setTimeout(late, this.#idle).unref()
  }
}

/** Connections that share a limit. */
class Pool {
  readonly #all = new Set<Connection>()
  /** Without a key, the oldest first. */
  readonly #unproven = new Set<Connection>()
  /** With a key and without a request, the longest idle first. */
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

  /** False where every connection is being answered. */
  makeRoom(most: number): boolean {
    if (this.size < most) return true
    const [one] = this.#unproven.size > 0 ? this.#unproven : this.#idle
    one?.close()
    return one !== undefined
  }
}
