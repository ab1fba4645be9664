/**
 * A client of do-sync rooms: keeps one WebSocket connected and continues after each reconnection where it was, without
 * loss and without duplicates. Plain JavaScript without dependencies or a build step, for browsers and everything else
 * that has a `WebSocket`.
 *
 * It makes one decision for its users: nothing in it is without a bound, and nothing that was handed to a socket is
 * sent again by itself, because only the application knows whether doing it twice does harm.
 *
 * @import { RoomClient as Declared, RoomOptions, Sendable, State, Url } from "./client.js"
 */

/** Close codes of do-sync. */
export const codes = Object.freeze({
  /** A hole in the sequence: the client comes back at once and continues. */
  RESYNC: 4000,
  /** Another connection of this member took over. */
  REPLACED: 4500,
  /** The application does not want this member. */
  KICKED: 4501,
});

/**
 * Whether a client comes back after this close code. Of the standard's codes after those that say that the connection
 * or the server is at fault; of 3000 to 4999 after the lower half of each thousand.
 *
 * @param {number} code
 * @returns {boolean}
 */
export const retries = (code) =>
  code < 3000 ? [1001, 1005, 1006, 1011, 1012, 1013, 1014].includes(code) : code < 5000 && code % 1000 < 500;

/** What the platform's timers can wait, in milliseconds; they do not wait at all for more. */
const LONGEST = 2 ** 31 - 1;

const DEFAULTS = {
  minDelay: 500,
  maxDelay: 15_000,
  connectTimeout: 10_000,
  stableAfter: 5_000,
  pingAfter: 30_000,
  pongTimeout: 10_000,
  maxFailures: Infinity,
  queueMessages: 16,
  queueBytes: 65_536,
  bufferBytes: 1_048_576,
  random: Math.random,
  // Looked up at each call: a page may replace them, and they do not work as methods of another object.
  setTimeout: (/** @type {() => void} */ run, /** @type {number} */ ms) => globalThis.setTimeout(run, ms),
  clearTimeout: (/** @type {any} */ timer) => globalThis.clearTimeout(timer),
};

const utf8 = new TextEncoder();
const fromUtf8 = new TextDecoder();

/**
 * Length in bytes on the wire.
 *
 * @param {unknown} data
 * @returns {number}
 */
const size = (data) => {
  if (typeof data === "string") return utf8.encode(data).length;
  if (data instanceof ArrayBuffer || ArrayBuffer.isView(data)) return data.byteLength;
  if (data instanceof Blob) return data.size;
  throw new TypeError("a message is a string, an ArrayBuffer, a view of one, or a Blob");
};

/**
 * Epoch and number, or `null` for what is no position.
 *
 * @param {unknown} text
 * @returns {[string, number] | null}
 */
const parsed = (text) => {
  const [, epoch, seq] = /^([0-9a-z]{1,13})-(\d{1,16})$/.exec(String(text)) ?? [];
  return Number.isSafeInteger(+seq) ? [epoch, +seq] : null;
};

/**
 * One member's connection to one room. Connects by itself; events are dispatched on it, see the README.
 *
 * @implements {Declared<any, any, any, any>}
 */
export class RoomClient extends EventTarget {
  /** Who is there, the id and what is known of each: kept while connected, as it last was while not.
   * @type {Map<string, any>} */
  members = new Map();
  /** The own id, as the room says it. @type {string | undefined} */
  member;
  /** @type {State} */
  state = "stopped";
  /** Why it has stopped. @type {number | undefined} */
  code;
  /** @type {string | undefined} */
  reason;

  /** @type {Url} */ #url;
  /** @type {typeof DEFAULTS & RoomOptions} */ #options = { ...DEFAULTS };
  /** @type {any} */ #page;
  /** Ends the listening to the page. */ #listening = new AbortController();
  /** The attempt or connection that is under way: what comes from an earlier one is not heard.
   * @type {object | undefined} */
  #current;
  /** @type {WebSocket | undefined} */ #socket;
  /** The next step of whatever the state is: there is only one. @type {any} */ #timer;
  /** @type {any} */ #stableTimer;
  /** Failed connections since the last stable one. */ #failures = 0;
  /** Failed attempts since the last one that opened. */ #unopened = 0;
  /** A second hole before anything was stable or new is no accident: then the pause grows. */ #resynced = false;
  /** In the browser's cache of pages. */ #suspended = false;

  /** What the application continues from, or cannot. @type {string | null | undefined} */ #asked;
  /** @type {string | undefined} */ #epoch;
  #seq = 0;
  /** Whether this connection goes on from where the one before ended, or is the first. */ #goesOn = false;
  /** Whether it brought something new. Behind one gap after the other nothing is. */ #progress = false;
  /** Whether this connection brings only a part of what was missed: then it is not in the room. */ #part = false;
  /** Whether nothing was missed since the last connection that was in the room. */ #continued = true;
  /** How many of the next messages are old ones. */ #replay = 0;
  /** Members who are counted but not listed. */ #unlisted = 0;

  /** @type {[string, string] | undefined} */ #ping;
  #probing = false;
  /** @type {number | undefined} */ #credit;
  #unacked = 0;
  #limit = Infinity;

  /** @type {Sendable[]} */ #queue = [];
  #queuedBytes = 0;

  /**
   * @param {Url} url
   * @param {RoomOptions} [options]
   */
  constructor(url, options = {}) {
    super();
    for (const [name, value] of Object.entries(options)) {
      if (value === undefined) continue;
      // Not a number or less than nothing would make a pause of nothing: a client that never rests.
      if (typeof DEFAULTS[/** @type {keyof typeof DEFAULTS} */ (name)] === "number" && !(value >= 0)) {
        throw new RangeError(`${name} is a number of at least 0`);
      }
      Object.assign(this.#options, { [name]: value });
    }
    this.#url = url;
    this.#page = options.window ?? globalThis;
    if (typeof url !== "function") this.#address(url); // a bad one is found here, not after the page has loaded
    this.#asked = options.after;
    [this.#epoch, this.#seq] = parsed(options.after) ?? [undefined, 0];
    this.connect();
  }

  /** Where to continue, for the option `after`; `undefined` before the first greeting. */
  get position() {
    return this.#epoch && `${this.#epoch}-${this.#seq}`;
  }

  /** How many members are there, also those who are too many to be listed. */
  get count() {
    return this.members.size + this.#unlisted;
  }

  /** Bytes that wait: in the queue, and in the socket. */
  get bufferedAmount() {
    return this.#queuedBytes + (this.#socket?.bufferedAmount ?? 0);
  }

  /** Starts again after it has stopped. Does nothing otherwise. */
  connect() {
    if (this.state !== "stopped") return;
    this.code = this.reason = undefined;
    this.#failures = this.#unopened = 0;
    this.#resynced = this.#suspended = false;
    this.#listen();
    this.#attempt();
  }

  /**
   * Stops for good; what is queued is given back by the event `stopped`.
   *
   * @param {number} [code]
   * @param {string} [reason]
   */
  close(code = 1000, reason = "") {
    if (this.state !== "stopped") this.#lost(code, reason, true);
  }

  /**
   * Sends now, or when the connection is there, or not at all because the bound would be exceeded.
   *
   * @param {Sendable} data
   * @returns {"sent" | "queued" | "refused"}
   */
  send(data) {
    const bytes = size(data);
    const { queueMessages, queueBytes, bufferBytes } = this.#options;
    if (this.state === "stopped" || bytes > this.#limit) return "refused";
    if (this.state === "open" && this.#socket?.readyState === 1 && !this.#queue.length) {
      if ((this.#socket.bufferedAmount ?? 0) + bytes > bufferBytes) return "refused";
      if (this.#transmit(data)) return "sent";
    }
    if (this.#queue.length >= queueMessages || this.#queuedBytes + bytes > queueBytes) return "refused";
    // A copy, as a socket makes one: the caller may use the buffer again.
    this.#queue.push(
      ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, bytes).slice() : data.slice(),
    );
    this.#queuedBytes += bytes;
    return "queued";
  }

  // ---- Attempts -----------------------------------------------------------------------------------------------

  async #attempt() {
    const attempt = (this.#current = {});
    this.#progress = false;
    const { connectTimeout, protocols = [] } = this.#options;
    this.#wait(connectTimeout, () => this.#lost(1006, "connect time-out"));
    this.#enter("connecting");
    let socket;
    try {
      // One turn later also when there is nothing to wait for: the maker of this client can listen first.
      const url = await (typeof this.#url === "function" ? this.#url() : this.#url);
      const spoken = await (typeof protocols === "function" ? protocols() : protocols);
      if (attempt !== this.#current) return;
      socket = this.#socket = new (this.#options.WebSocket ?? globalThis.WebSocket)(this.#address(url), spoken);
    } catch (error) {
      // What does not depend on anything that may change will fail again.
      const fixed = typeof this.#url !== "function" && typeof protocols !== "function";
      if (attempt === this.#current) this.#lost(1006, String(error), fixed);
      return;
    }
    socket.binaryType = "arraybuffer";
    /** @type {(type: string, run: (event: any) => void) => void} */
    const on = (type, run) =>
      socket.addEventListener(type, (/** @type {any} */ event) => void (attempt === this.#current && run(event)));
    on("message", ({ data }) => {
      this.#receive(data);
      if (attempt === this.#current) this.#acknowledge(data);
    });
    on("close", ({ code, reason }) => this.#lost(code, reason));
    on("error", () => {}); // `close` follows; some sockets throw when nobody listens
  }

  /**
   * @param {string | URL} url
   * @returns {string}
   */
  #address(url) {
    const address = new URL(url, this.#page.location?.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.hash = ""; // a WebSocket takes none
    if (this.position) address.search += `${address.search ? "&" : "?"}after=${this.position}`;
    return address.href;
  }

  /**
   * The attempt or the connection is over, by whomever.
   *
   * @param {number} code
   * @param {string} reason
   * @param {boolean} stop
   */
  #lost(code, reason, stop = !retries(code)) {
    const { minDelay, maxDelay, maxFailures, random } = this.#options;
    const [socket, idle] = [this.#socket, this.#idle];
    this.#current = this.#socket = this.#ping = this.#credit = undefined;
    this.#options.clearTimeout(this.#timer);
    this.#options.clearTimeout(this.#stableTimer);
    try {
      // Without effect when the other side has closed. A browser allows 1000 and from 3000 on.
      socket?.close(stop ? code : codes.RESYNC, reason);
    } catch {
      socket?.close();
    }
    if (this.state === "connecting" && !idle && !this.#part) this.#unopened += 1;
    if (stop || this.#unopened >= Math.max(maxFailures, 1)) return this.#stop(code, reason);
    let delay = maxDelay;
    if (!idle) {
      delay = random() * Math.min(maxDelay, minDelay * 2 ** this.#failures);
      if (code !== codes.RESYNC || (this.#resynced && !this.#progress)) this.#failures += 1;
      else [delay, this.#resynced] = [0, true];
    }
    this.#part = false;
    if (!this.#suspended) this.#wait(delay, () => this.#attempt());
    this.#enter("waiting");
    // A listener may have stopped it, or stopped it and begun anew: then that is what was heard last.
    if (this.state === "waiting") this.#emit("close", { code, reason, delay });
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  #stop(code, reason) {
    const unsent = this.#queue;
    [this.#queue, this.#queuedBytes] = [[], 0];
    this.#listening.abort();
    [this.code, this.reason] = [code, reason];
    this.#enter("stopped");
    this.#emit("stopped", { code, reason, unsent });
  }

  /** The page or the network is away: an attempt says nothing about the server. */
  get #idle() {
    return this.#suspended || this.#page.navigator?.onLine === false;
  }

  // ---- The page -----------------------------------------------------------------------------------------------

  /** The network, the reader or the page is back: no reason to wait, and an old connection may be dead. */
  #listen() {
    const { signal } = (this.#listening = new AbortController());
    const { document } = this.#page;
    /** @type {(target: any, type: string, run: (event: any) => void) => void} */
    const on = (target, type, run) => target?.addEventListener?.(type, run, { signal });
    const wake = () => {
      if (this.state === "waiting" && !this.#idle) this.#attempt();
      else if (!this.#probing) this.#probe();
    };
    on(this.#page, "online", wake);
    on(this.#page, "offline", wake);
    on(document, "resume", wake);
    on(document, "visibilitychange", () => document.visibilityState === "visible" && wake());
    on(this.#page, "pagehide", ({ persisted }) => {
      // A page is not kept with an open connection, or it is kept and the connection is not.
      if (!persisted || this.#suspended) return;
      this.#suspended = true;
      if (this.state === "waiting") this.#options.clearTimeout(this.#timer);
      else this.#lost(1001, "the page is put away");
    });
    on(this.#page, "pageshow", () => {
      if (!this.#suspended) return;
      this.#suspended = false;
      wake();
    });
  }

  // ---- What comes ---------------------------------------------------------------------------------------------

  /** @param {unknown} data */
  #receive(data) {
    this.#heard();
    if (data instanceof ArrayBuffer && this.#greeted && this.#binary(data)) return;
    if (typeof data === "string" && (data === this.#ping?.[1] || this.#text(data))) return;
    this.#emit("raw", { data });
  }

  /**
   * Whether it is a frame of the protocol.
   *
   * @param {string} text
   * @returns {boolean}
   */
  #text(text) {
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      return false;
    }
    const { t, s, at, from, member, d, data } = frame ?? {};
    if (t === undefined) return false;
    // What is unknown is for a newer client, and what is wrong leaves a hole.
    if (!this.#greeted) {
      if (t === "hello") this.#hello(frame, parsed(at));
    } else if (t === "ev") this.#emit("event", { data: d });
    else if (t === "msg") this.#next(s, "message", { at, from, data: d });
    else if (["joined", "updated", "left"].includes(t) && typeof member === "string") {
      this.#next(s, t, { at, member, data });
    }
    return true;
  }

  get #greeted() {
    return this.state === "open" || this.#part;
  }

  /**
   * 0x01, sequence and time of 8 bytes each, one byte with the length of the sender, the sender, the payload.
   *
   * @param {ArrayBuffer} buffer
   * @returns {boolean}
   */
  #binary(buffer) {
    const view = new DataView(buffer);
    const start = buffer.byteLength < 18 ? Infinity : 18 + view.getUint8(17);
    if (start > buffer.byteLength || view.getUint8(0) !== 1) return false;
    const from = fromUtf8.decode(new Uint8Array(buffer, 18, start - 18)) || undefined;
    const data = new Uint8Array(buffer, start);
    return this.#next(Number(view.getBigUint64(1)), "binary", { at: Number(view.getBigInt64(9)), from, data });
  }

  /**
   * The next of the sequence, or a hole in it.
   *
   * @param {unknown} seq
   * @param {string} type
   * @param {{ member?: any, data: any, at: any, from?: any }} fields
   * @returns {boolean}
   */
  #next(seq, type, fields) {
    if (!Number.isSafeInteger(seq)) return false;
    if (seq !== this.#seq + 1) {
      this.#lost(codes.RESYNC, `${seq} came after ${this.#seq}`);
      return true;
    }
    this.#seq += 1;
    this.#progress ||= this.#goesOn;
    const replayed = this.#replay > 0;
    if (replayed) this.#replay -= 1; // and the greeting's list of members is newer
    else if (type === "joined" || type === "updated" || type === "left") this.#seen(type, fields);
    const attempt = this.#current;
    this.#emit(type, { seq, replayed, ...fields });
    if (this.#part && !this.#replay && attempt === this.#current) this.#lost(codes.RESYNC, "next part");
    return true;
  }

  /**
   * Somebody came, changed or went.
   *
   * @param {string} type
   * @param {{ member?: any, data: any }} fields
   */
  #seen(type, { member, data }) {
    // Who was there already and is not listed is one of those who are only counted.
    if (type !== "joined" && !this.members.has(member)) this.#unlisted = Math.max(0, this.#unlisted - 1);
    if (type === "left") this.members.delete(member);
    else this.members.set(member, data);
  }

  /**
   * @param {any} hello
   * @param {[string, number] | null} at
   */
  #hello(hello, at) {
    if (!at) return;
    const attempt = this.#current;
    const before = /** @type {const} */ ([this.#epoch, this.#seq, this.#asked]);
    const asked = this.position ?? this.#asked;
    // A server that continues elsewhere without a word leaves a gap all the same.
    const missed = this.#epoch === at[0] && at[1] > this.#seq ? at[1] - this.#seq : null;
    const { after = asked, lost = missed } = hello.gap ?? {};
    [this.#epoch, this.#seq, this.#asked] = [...at, undefined];
    this.#part = hello.more === true;
    this.#replay = Number(hello.replay) || 0;
    this.member = hello.member;
    const [ask, answer] = Array.isArray(hello.ping) ? hello.ping : [];
    this.#ping = typeof ask === "string" && typeof answer === "string" ? [ask, answer] : undefined;
    this.#credit = hello.credit > 0 ? hello.credit : undefined;
    this.#unacked = 0;
    this.#limit = hello.limits?.bytes > 0 ? hello.limits.bytes : Infinity;
    this.#unopened = 0;
    /** Any listener may close or stop the client. @type {(type: string, fields: object) => void} */
    const emit = (type, fields) => void (attempt === this.#current && this.#emit(type, fields));
    const position = this.position;
    this.#goesOn = !asked || asked === position;
    if (asked !== position) this.#continued = false;
    if (!this.#part) this.#open(hello);
    if (asked && asked !== position) emit("gap", { after, lost });
    if (hello.snapshot !== undefined) emit("snapshot", { data: hello.snapshot });
    if (attempt !== this.#current) {
      // Who left in the middle may not know of the gap, or the state behind it: the next greeting tells again.
      [this.#epoch, this.#seq, this.#asked] = before;
      return;
    }
    if (this.#part) return;
    const resumed = this.#continued;
    this.#continued = true;
    emit("open", { member: this.member, resumed, replay: this.#replay });
  }

  /** In the room. @param {any} hello */
  #open(hello) {
    this.members.clear();
    for (const each of Array.isArray(hello.members) ? hello.members : []) {
      if (typeof each?.id === "string") this.members.set(each.id, each.data);
    }
    this.#unlisted = Math.max(0, (Number(hello.count) || 0) - this.members.size);
    this.#options.clearTimeout(this.#timer);
    this.#stableTimer = this.#options.setTimeout(() => {
      this.#failures = 0;
      this.#resynced = false;
    }, Math.min(this.#options.stableAfter, LONGEST));
    this.#enter("open");
    this.#heard();
    this.#flush();
  }

  // ---- What goes ----------------------------------------------------------------------------------------------

  #flush() {
    while (this.#queue.length && this.state === "open") {
      const data = this.#queue[0];
      // How long a message may be was not known before.
      const refused = size(data) > this.#limit;
      if (!refused && !this.#transmit(data)) return; // stays for the next connection
      this.#queue.shift();
      this.#queuedBytes -= size(data);
      if (refused) this.#emit("refused", { data });
    }
  }

  /**
   * Whether the socket has taken it.
   *
   * @param {Sendable} data
   * @returns {boolean}
   */
  #transmit(data) {
    try {
      this.#socket?.send(/** @type {any} */ (data));
      return true;
    } catch {
      return false;
    }
  }

  /** Tells a room that cannot see it how much has arrived. @param {any} data */
  #acknowledge(data) {
    if (!this.#credit) return;
    this.#unacked += size(data);
    if (this.#unacked < this.#credit / 4) return;
    this.#transmit(`{"t":"ack","b":${this.#unacked}}`);
    this.#unacked = 0;
  }

  #heard() {
    this.#probing = false;
    if (this.#part) this.#wait(this.#options.connectTimeout, () => this.#lost(1006, "connect time-out"));
    else if (this.#ping) this.#wait(this.#options.pingAfter, () => this.#probe());
  }

  #probe() {
    if (!this.#ping) return;
    this.#probing = true;
    this.#wait(this.#options.pongTimeout, () => this.#lost(1006, "no answer to a ping"));
    this.#transmit(this.#ping[0]);
  }

  // ---- Tools --------------------------------------------------------------------------------------------------

  /**
   * @param {number} ms
   * @param {() => void} run
   */
  #wait(ms, run) {
    this.#options.clearTimeout(this.#timer);
    this.#timer = this.#options.setTimeout(run, Math.min(ms, LONGEST));
  }

  /** @param {State} state */
  #enter(state) {
    this.state = state;
    this.#emit("state", { state });
  }

  /**
   * @param {any} type
   * @param {any} fields
   */
  #emit(type, fields) {
    this.dispatchEvent(Object.assign(new Event(type), fields));
  }
}
