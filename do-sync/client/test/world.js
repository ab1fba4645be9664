/** A world without a network and without time, in which a client's every step can be seen. */

import { RoomClient } from "../client.js";

/** A WebSocket with a browser's rules whose other side is the test. */
class FakeSocket extends EventTarget {
  readyState = 0;
  bufferedAmount = 0;
  /** What the client has sent. */
  sent = [];
  /** What the client said when it closed. */
  closed = undefined;

  constructor(url, protocols) {
    super();
    this.url = url;
    this.protocols = protocols;
  }

  send(data) {
    if (this.readyState === 0) throw new DOMException("still connecting", "InvalidStateError");
    if (this.readyState === 1) this.sent.push(data);
  }

  close(code, reason = "") {
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999)) {
      throw new DOMException(`${code}`, "InvalidAccessError");
    }
    if (new TextEncoder().encode(reason).length > 123) throw new DOMException("reason", "SyntaxError");
    if (this.readyState > 1) return;
    this.readyState = 2; // and the answer of the other side may never come
    this.closed = { code, reason };
  }

  // ---- The other side ----

  open() {
    this.readyState = 1;
    this.dispatchEvent(new Event("open"));
  }

  say(data) {
    const plain = typeof data === "string" || data instanceof ArrayBuffer;
    this.dispatchEvent(Object.assign(new Event("message"), { data: plain ? data : JSON.stringify(data) }));
  }

  /** Accepts and greets. */
  greet(at = "k3x-0", more = {}) {
    this.open();
    this.say({ t: "hello", at, member: "ann", socket: "1", replay: 0, members: [], count: 0, ...more });
  }

  end(code = 1006, reason = "") {
    this.readyState = 3;
    this.dispatchEvent(new Event("error"));
    this.dispatchEvent(Object.assign(new Event("close"), { code, reason }));
  }
}

export class World {
  sockets = [];
  /** What `Math.random` gives. */
  chance = 0.5;
  now = 0;
  #timers = new Map();
  #nextTimer = 1;
  /** Events of the client, each with its fields. */
  heard = [];

  window = Object.assign(new EventTarget(), {
    navigator: { onLine: true },
    location: { href: "https://example.invalid/room/page.html#top" },
    document: Object.assign(new EventTarget(), { visibilityState: "visible" }),
  });

  options = (more = {}) => {
    const world = this;
    return {
      WebSocket: class extends FakeSocket {
        constructor(url, protocols) {
          super(url, protocols);
          world.sockets.push(this);
        }
      },
      setTimeout: (run, ms) => {
        this.#timers.set(this.#nextTimer, { at: this.now + ms, run });
        return this.#nextTimer++;
      },
      clearTimeout: (timer) => void this.#timers.delete(timer),
      random: () => this.chance,
      window: this.window,
      ...more,
    };
  };

  /** A client whose first attempt is under way. */
  async client(options = {}, url = "wss://example.invalid/ws?room=a") {
    const client = new RoomClient(url, this.options(options));
    this.listen(client);
    await settled();
    return client;
  }

  /** A client that is connected. */
  async connected(options = {}, at = "k3x-0", hello = {}) {
    const client = await this.client(options);
    this.socket.greet(at, hello);
    this.heard.length = 0;
    return client;
  }

  listen(client) {
    const names = ["open", "message", "binary", "joined", "updated", "left", "event", "gap", "snapshot", "raw", "refused"];
    for (const name of [...names, "close", "stopped"]) {
      client.addEventListener(name, (event) => this.heard.push(Object.fromEntries([["type", name], ...Object.entries(event)])));
    }
  }

  /** The newest socket. */
  get socket() {
    return this.sockets.at(-1);
  }

  /** How long until the next timer, or `undefined`. */
  get next() {
    const soonest = Math.min(...[...this.#timers.values()].map(({ at }) => at));
    return soonest === Infinity ? undefined : soonest - this.now;
  }

  get timers() {
    return this.#timers.size;
  }

  /** Lets time pass, timer by timer. */
  async pass(ms) {
    const end = this.now + ms;
    await settled();
    while (this.next !== undefined && this.now + this.next <= end) {
      this.now += this.next;
      for (const [id, { at, run }] of [...this.#timers]) {
        if (at <= this.now && this.#timers.delete(id)) run();
      }
      await settled();
    }
    this.now = end;
  }

  /** The types of what was heard since the last look, in order. */
  types() {
    return this.heard.splice(0).map(({ type }) => type);
  }

  /** What was heard of this type since the last look, without the fields of every event. */
  of(type) {
    const found = this.heard.filter((event) => event.type === type);
    this.heard = this.heard.filter((event) => event.type !== type);
    return found.map(({ type: _, isTrusted: __, ...fields }) => fields);
  }
}

/** All that does not wait for time has happened. */
export const settled = () => new Promise(setImmediate);

/** A binary frame of the protocol. */
export function frame(seq, at, from, payload) {
  const name = new TextEncoder().encode(from);
  const bytes = new Uint8Array(18 + name.length + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, 1);
  view.setBigUint64(1, BigInt(seq));
  view.setBigInt64(9, BigInt(at));
  view.setUint8(17, name.length);
  bytes.set(name, 18);
  bytes.set(payload, 18 + name.length);
  return bytes.buffer;
}

export const msg = (s, d, from) => ({ t: "msg", s, at: 1000 + s, ...(from && { from }), d });
