/** A client of do-sync rooms; see README.md for what it guarantees. */

/** Close codes of do-sync. */
export declare const codes: Readonly<{
  /** A hole in the sequence: the client comes back at once and continues. */
  RESYNC: 4000;
  /** Another connection of this member took over. */
  REPLACED: 4500;
  /** The application does not want this member. */
  KICKED: 4501;
}>;

/** Whether a client comes back after this close code. */
export declare function retries(code: number): boolean;

/** What can be sent. */
export type Sendable = string | ArrayBuffer | ArrayBufferView<ArrayBuffer> | Blob;

/**
 * Where the room is: `ws:`, `wss:`, or `http:` and `https:`, which mean the same; in a page it may be relative. A
 * function is asked before each attempt, for a token that is fresh. The client adds `after=POSITION`.
 */
export type Url = string | URL | (() => string | URL | PromiseLike<string | URL>);

/** Sub-protocols, or a function that is asked before each attempt. */
export type Protocols = string | string[] | (() => string | string[] | PromiseLike<string | string[]>);

/**
 * - `connecting`: an attempt is under way.
 * - `open`: the room has greeted.
 * - `waiting`: for the next attempt.
 * - `stopped`: nothing happens any more before `connect()`; `code` and `reason` say why.
 */
export type State = "connecting" | "open" | "waiting" | "stopped";

/** All times are milliseconds. */
export interface RoomOptions {
  /** Where to continue, an earlier `position`. What is no position counts as one that cannot be continued. */
  after?: string | null | undefined;
  /** Default: none. */
  protocols?: Protocols | undefined;
  /** The pause is a random part of this, which doubles with each failure. Default 500. */
  minDelay?: number | undefined;
  /** Up to this. Default 15 000. */
  maxDelay?: number | undefined;
  /** For an attempt, from asking for the address to the greeting. Default 10 000. */
  connectTimeout?: number | undefined;
  /** A connection that lasts this long ends the doubling. Default 5 000. */
  stableAfter?: number | undefined;
  /** After this long without a message the connection is tried with a ping, where the room answers pings. Default 30 000. */
  pingAfter?: number | undefined;
  /** For the answer. Default 10 000. */
  pongTimeout?: number | undefined;
  /** Stops after so many attempts in a row that did not open: a browser does not see an HTTP status such as 403. Default: never. */
  maxFailures?: number | undefined;
  /** Most messages that wait for a connection. Default 16; a room that limits the rate should allow such a burst. */
  queueMessages?: number | undefined;
  /** Most bytes that wait for a connection. Default 65 536. */
  queueBytes?: number | undefined;
  /** Most bytes that wait in the socket. Default 1 048 576. */
  bufferBytes?: number | undefined;
  /** Default: the global one. Node.js before 22 has none: give it the one of the package `ws`. */
  WebSocket?: WebSocketClass | undefined;
  /** From 0 to below 1. For tests. */
  random?: (() => number) | undefined;
  /** For tests. */
  setTimeout?: ((run: () => void, ms: number) => unknown) | undefined;
  /** For tests. */
  clearTimeout?: ((timer: any) => void) | undefined;
  /** Whose events, `document`, `navigator` and `location` count. For tests. */
  window?: object | undefined;
}

/** What the client needs of a WebSocket. */
export interface WebSocketClass {
  new (url: string, protocols?: string | string[]): any;
}

/** A message of the room's sequence. */
export interface Sequenced extends Event {
  /** Its place in the sequence. */
  readonly seq: number;
  /** When it was published, milliseconds since 1970 by the room's clock. */
  readonly at: number;
  /** Whether it is from before this connection: history, or missed. */
  readonly replayed: boolean;
}

/** A published value. */
export interface MessageEventOf<T> extends Sequenced {
  readonly type: "message";
  readonly data: T;
  /** The member who sent it; without one it is from the room itself. */
  readonly from?: string;
}

/** Published bytes. */
export interface BinaryEvent extends Sequenced {
  readonly type: "binary";
  readonly data: Uint8Array<ArrayBuffer>;
  /** The member who sent it; without one it is from the room itself. */
  readonly from?: string;
}

/** A member has come, has other data, or has gone. */
export interface MemberEvent<M> extends Sequenced {
  readonly type: "joined" | "updated" | "left";
  readonly member: string;
  readonly data?: M;
}

/** The client is in the room: `members` and `count` are those of the room. After `gap` and `snapshot`, where there are these. */
export interface OpenEvent extends Event {
  readonly type: "open";
  /** The own id. */
  readonly member?: string;
  /** Whether everything was continued since the client was last in the room: then nothing is missing. */
  readonly resumed: boolean;
  /** How many of the messages that follow are old ones. */
  readonly replay: number;
}

/** Something was missed and cannot be had any more. */
export interface GapEvent extends Event {
  readonly type: "gap";
  /** The position that could not be continued. */
  readonly after: string;
  /** How many messages, where that is known. */
  readonly lost: number | null;
}

/** An unsequenced event (`ev`), the application's snapshot, or a message as it came that is not of the protocol. */
export interface DataEvent<T> extends Event {
  readonly data: T;
}

/** A connection or an attempt is over, the next follows. */
export interface LostEvent extends Event {
  readonly type: "close";
  /** 1006 when there was no close code. */
  readonly code: number;
  readonly reason: string;
  /** The pause before the next attempt. */
  readonly delay: number;
}

/** It is over. */
export interface StoppedEvent extends Event {
  readonly type: "stopped";
  readonly code: number;
  readonly reason: string;
  /** What was still in the queue. */
  readonly unsent: Sendable[];
}

export interface RoomEvents<T = unknown, M = unknown, E = unknown, S = unknown> {
  open: OpenEvent;
  message: MessageEventOf<T>;
  binary: BinaryEvent;
  joined: MemberEvent<M>;
  updated: MemberEvent<M>;
  left: MemberEvent<M>;
  /** Not sequenced: may be missed, or replaced by a newer one. */
  event: DataEvent<E>;
  gap: GapEvent;
  snapshot: DataEvent<S>;
  /** A message as it came that is not of the protocol. */
  raw: DataEvent<string | ArrayBuffer>;
  /** A queued message turned out to be longer than the room takes. */
  refused: DataEvent<Sendable>;
  close: LostEvent;
  stopped: StoppedEvent;
  state: Event & { readonly state: State };
}

/**
 * One member's connection to one room. Connects by itself.
 *
 * `T` is what the room publishes, `M` what it tells of a member, `E` its unsequenced events, `S` its snapshot. They are
 * promises of the server: nothing is checked here.
 */
export declare class RoomClient<T = unknown, M = unknown, E = unknown, S = unknown> extends EventTarget {
  /**
   * @throws TypeError the address is none
   * @throws RangeError a number of the options is negative or none
   */
  constructor(url: Url, options?: RoomOptions);

  readonly state: State;
  /** Where to continue, for the option `after`; `undefined` before the first greeting. It includes the message whose event is being dispatched. */
  readonly position: string | undefined;
  /** Who is there, the id and what is known of each: kept while connected, as it last was while not. At most those that the room lists. */
  readonly members: ReadonlyMap<string, M>;
  /** How many members are there, also those who are too many to be listed. */
  readonly count: number;
  /** The own id, as the room says it. */
  readonly member: string | undefined;
  /** Why it has stopped. */
  readonly code: number | undefined;
  /** Why it has stopped. */
  readonly reason: string | undefined;
  /** Bytes that wait: in the queue, and in the socket. */
  readonly bufferedAmount: number;

  /** Starts again after it has stopped. Does nothing otherwise. */
  connect(): void;

  /** Stops for good. Of a browser's close codes only 1000 and those from 3000 to 4999 reach the room. */
  close(code?: number, reason?: string): void;

  /**
   * Sends now (`sent`), or when the connection is there (`queued`), or not at all (`refused`): when a bound would be
   * exceeded, when it is longer than the room takes, or when the client has stopped. What is `sent` may be lost with
   * the connection, and is never sent twice.
   *
   * @throws TypeError it cannot be sent by any WebSocket
   */
  send(data: Sendable): "sent" | "queued" | "refused";

  addEventListener<K extends keyof RoomEvents>(
    type: K,
    listener: ((this: this, event: RoomEvents<T, M, E, S>[K]) => unknown) | { handleEvent(event: RoomEvents<T, M, E, S>[K]): unknown } | null,
    options?: boolean | AddEventListenerOptions,
  ): void;

  removeEventListener<K extends keyof RoomEvents>(
    type: K,
    listener: ((this: this, event: RoomEvents<T, M, E, S>[K]) => unknown) | { handleEvent(event: RoomEvents<T, M, E, S>[K]): unknown } | null,
    options?: boolean | EventListenerOptions,
  ): void;
}
