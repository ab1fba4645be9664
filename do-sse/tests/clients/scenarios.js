/**
 * What a client of feeds has to live through, the same for every `EventSource`: a browser's own and those from npm.
 *
 * A scenario is given a world (`EventSource`, the address of the feeds, what this client is known to do differently), asks
 * the server to make a feed of its own, and reads what its listeners are called with. Nothing here waits for a time to
 * pass: only for something to be so.
 *
 * They ask of a feed what the web-platform-tests for EventSource ask of a browser by servers that write what they are told.
 * `message`: "what is published"; `last-event-id`: "ids need not be ASCII"; `last-event-id2`: "ids persist, change and end";
 * `status-reconnect`: "who is cut off", "retry is honoured"; `reconnect-fail`: "204 ends it"; `status-error`: "an error ends
 * it"; `accept` and `cache-control`: "the first event says"; `cors`, `cors-cookie` and `cors-unsafe-last-event-id`: those of
 * pages of another origin.
 */

/** After this long a condition does not come true any more. */
const PATIENCE = 30_000;

const assert = (is, what) => {
  if (!is) throw new Error(what);
};

const same = (found, wanted, what) => {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  assert(a === b, `${what}: found ${a.slice(0, 2_000)}, wanted ${b.slice(0, 2_000)}`);
};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const until = async (what, condition) => {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await condition();
    if (found) return found;
    assert(Date.now() < end, `not so: ${what()}`);
    await pause(5);
  }
};

/** A feed that the server makes for one scenario. */
export class Feed {
  listeners = [];

  constructor(world, name) {
    this.world = world;
    this.url = `${world.base}/${name}`;
  }

  async post(what, body) {
    // As text, so that a page of another origin may do so without asking.
    const response = await fetch(`${this.url}/${what}`, { method: "POST", body: JSON.stringify(body) });
    const text = await response.text();
    assert(response.ok, `${what}: ${response.status} ${text}`);
    return text;
  }

  make(settings) {
    return this.post("make", settings);
  }

  /** Does all of it in one go and gives the state of the server. */
  async do(...actions) {
    return JSON.parse(await this.post("do", actions));
  }

  publish(...events) {
    return this.do(...events.map((publish) => ({ publish })));
  }

  /** Until the server's state is so. */
  async stands(what, condition) {
    let state;
    return await until(
      () => `${what}: ${JSON.stringify({ ...state, seen: state.seen.length })}`,
      async () => {
        state = await this.do();
        return condition(state) && state;
      },
    );
  }

  open(types = [], query = "", init = undefined) {
    const listener = new Listener(this.world, `${this.url}/events${query}`, types, init);
    this.listeners.push(listener);
    return listener;
  }

  /** Opens, and waits until it is in. */
  async enter(types, query, init) {
    const listener = this.open(types, query, init);
    await listener.until("it is in", () => listener.of("ready").length === 1);
    return listener;
  }

  async close() {
    for (const listener of this.listeners) listener.source.close();
  }
}

/** An EventSource and all that its listeners heard. */
class Listener {
  heard = [];
  errors = [];
  opened = 0;

  constructor(world, url, types, init) {
    const source = new world.EventSource(url, init);
    this.source = source;
    source.addEventListener("open", () => (this.opened += 1));
    source.addEventListener("error", () => this.errors.push(source.readyState));
    for (const type of ["message", "ready", "reset", "replaced", ...types]) {
      source.addEventListener(type, (event) =>
        this.heard.push({ type: event.type, data: event.data, id: event.lastEventId, origin: event.origin }),
      );
    }
  }

  of(...types) {
    return this.heard.filter(({ type }) => types.includes(type));
  }

  data(...types) {
    return this.of(...types).map(({ data }) => data);
  }

  until(what, condition) {
    const heard = () => JSON.stringify(this.heard).slice(0, 2_000);
    return until(() => `${what}; state ${this.source.readyState}, heard ${heard()}, errors ${this.errors}`, condition);
  }
}

const range = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

const CLOSED = 2;

/** Every one has a feed of its own, so that they can run side by side. */
export const scenarios = {
  async "what is published is what listeners hear"(feed) {
    await feed.make({ history: 100 });
    const long = `${"x".repeat(65_536)}\n${"ü😀".repeat(8_192)}`;
    const data = [
      "plain", "two\nlines", "three\n\nlines", " one space", "   three", "\ttab", "space at the end ", "", "\n", "ends\n",
      "cr\rlf\ncrlf\r\nend", "\r", "\r\n\r\n", "\uFEFFmark", "\u2028\u2029", "a\u0000b", "😀 ü \u{10FFFF}", ": no comment",
      "data: no field", "id: 7\nretry: 1", '{"json":"\\n"}', long,
    ];
    const types = ["tick", "two words", "größe", ":", "data", " led"];
    const events = [
      ...data.map((data) => ({ data })),
      ...types.map((event) => ({ event, data: event })),
      { event: "", data: "an empty name is none" },
      // Without data nobody is called.
      { event: "tick" }, { comment: "words" }, { retry: 10 },
      { event: "tick", data: "last", comment: "with\nwords" },
    ];
    const listener = await feed.enter(types);
    const [ready] = listener.of("ready");
    await feed.publish(...events);
    await listener.until("the last is there", () => listener.data("tick").includes("last"));
    const [epoch, first] = ready.id.split("-");
    const wanted = events
      .map(({ event, data }, index) => ({ type: event || "message", data, id: `${epoch}-${+first + 1 + index}` }))
      .filter(({ data }) => data !== undefined)
      .map((event) => ({ ...event, data: event.data.replaceAll(/\r\n?/g, "\n"), origin: new URL(feed.url).origin }));
    same(listener.heard.slice(1), wanted, "heard");
    same(listener.errors, [], "errors");
  },

  async "the first event says who one is and where it begins"(feed) {
    await feed.make({ history: 10 });
    await feed.publish({ data: "before" }, { data: "before" });
    const listener = await feed.enter([], "?id=tab-7");
    const [ready] = listener.heard;
    same([ready.type, JSON.parse(ready.data)], ["ready", { connection: "tab-7" }], "ready");
    assert(/^[0-9a-z]+-2$/.test(ready.id), ready.id);
    same([listener.opened, listener.source.readyState, listener.errors], [1, 1, []], "open");
    const { seen } = await feed.do();
    assert(seen[0].accept.includes("text/event-stream"), `accept: ${seen[0].accept}`);
    assert(/^no-(store|cache)$/.test(seen[0].cache_control), `cache-control: ${seen[0].cache_control}`);
    same(seen[0].last_event_id, null, "nothing to resume from");
  },

  async "who is cut off continues without loss and without doubles"(feed) {
    await feed.make({ history: 1_000 });
    const listener = await feed.enter();
    for (const round of range(0, 5)) {
      const from = round * 20;
      const numbers = (from, to) => range(from, to).map((n) => ({ publish: { data: `${n}` } }));
      // Some before the end, some while it is away, some while it may come back.
      await feed.do(...numbers(from + 1, from + 6), { close: {} }, ...numbers(from + 7, from + 12));
      for (const n of range(from + 13, from + 20)) await feed.publish({ data: `${n}` });
      await listener.until("it is back", () => listener.of("ready").length === round + 2);
    }
    await feed.publish({ data: "121" });
    await listener.until("the last is there", () => listener.data("message").includes("121"));
    same(listener.data("message").map(Number), range(1, 121), "each once and in order");
    same(listener.of("reset"), [], "no gap");
    const state = await feed.stands("it came six times", ({ seen }) => seen.length >= 7);
    same(state.seen.slice(1).every(({ last_event_id }) => last_event_id !== null), true, "each said what it had");
    same([state.gaps, state.resumed, state.connections], [0, state.seen.length - 1, 1], "gaps, resumed, connections");
  },

  async "it continues from the first event when it heard nothing else"(feed) {
    await feed.make({ history: 10 });
    const listener = await feed.enter();
    await feed.do({ close: {} }, { publish: { data: "missed" } });
    await listener.until("it has what it missed", () => listener.data("message").includes("missed"));
    same(listener.of("reset"), [], "no gap");
  },

  async "retry is honoured"(feed) {
    // Longer than any client waits by itself, and the server adds up to half.
    await feed.make({ retry: 3_200, history: 10 });
    await feed.enter();
    const { at } = await feed.do({ close: {} });
    const { seen } = await feed.stands("it is back", ({ seen }) => seen.length > 1);
    assert(seen[1].at - at >= 3_150, `it came back after ${seen[1].at - at} ms`);
  },

  async "ids persist, change and end"(feed, { knows }) {
    await feed.make({ history: null });
    const listener = await feed.enter();
    const say = (data, id) => ({ broadcast: id === undefined ? { data } : { data, id } });
    await feed.do(say("none"), say("first", "1"), say("still"), say("second", "2"), say("still"));
    await listener.until("all are there", () => listener.of("message").length === 5);
    const wanted = knows.idsPersist ? ["", "1", "1", "2", "2"] : ["", "1", "", "2", ""];
    same(listener.of("message").map(({ id }) => id), wanted, "the ids that listeners see");
    const times = async (n) => (await feed.stands("it is back", ({ seen }) => seen.length > n)).seen[n].last_event_id;
    await feed.do({ close: {} });
    same(await times(1), "2", "the id that it comes back with");
    await listener.until("it is in", () => listener.of("ready").length === 2);
    await feed.do(say("no more", ""));
    await listener.until("it is there", () => listener.of("message").length === 6);
    same(listener.of("message")[5].id, "", "the empty id");
    await feed.do({ close: {} });
    same(await times(2), knows.idsEnd ? null : "2", "no id to come back with");
  },

  async "an id without data is one"(feed, { knows }) {
    await feed.make({ history: null });
    const listener = await feed.enter();
    await feed.do({ broadcast: { id: "mark" } }, { close: {} });
    const { seen } = await feed.stands("it is back", ({ seen }) => seen.length > 1);
    // Hence the event that a stream begins with has data.
    same(seen[1].last_event_id, knows.idsWithoutData ? "mark" : null, "the id that it comes back with");
    same(listener.of("message"), [], "nobody is called");
  },

  async "ids need not be ASCII"(feed, { knows }) {
    await feed.make({ echo: true });
    const id = "\u2026ü😀";
    const listener = await feed.enter();
    await listener.until("it is asked for", () => listener.data("message").join() === "null");
    await feed.do({ broadcast: { data: "with an id", id } }, { close: {} });
    if (knows.idsOfAnyKind) {
      await listener.until("it is asked for the rest", () => listener.of("message").length === 3);
      same(listener.data("message")[2], JSON.stringify(id), "what the application is asked with");
    } else {
      // It tries to, for ever, and fails before it has sent a byte. Hence positions are ASCII.
      await listener.until("it fails", () => listener.errors.length > 3);
      same([(await feed.do()).seen.length, listener.of("message")[1].id], [1, id], "it never comes back");
    }
  },

  async "the address says where a first connection continues, and the header where a later one does"(feed) {
    await feed.make({ history: 10 });
    await feed.publish({ data: "1" }, { data: "2" }, { data: "3" });
    const before = await feed.enter();
    const [epoch] = before.of("ready")[0].id.split("-");
    const listener = await feed.enter([], `?lastEventId=${epoch}-1`);
    await listener.until("the rest is there", () => listener.of("message").length === 2);
    await feed.do({ close: {} }, { publish: { data: "4" } });
    await listener.until("the new one is there", () => listener.data("message").includes("4"));
    same(listener.data("message"), ["2", "3", "4"], "each once");
  },

  async "204 ends it"(feed) {
    await feed.make({ history: 10 });
    const listener = await feed.enter();
    await feed.do({ answer: "stop" }, { close: {} });
    await listener.until("it gives up", () => listener.source.readyState === CLOSED);
    await feed.do({ answer: "open" });
    const other = await feed.enter(); // time enough for whoever wanted to come back at once
    const { seen } = await feed.do();
    same([seen.length, listener.of("ready").length, other.of("ready").length], [3, 1, 1], "nobody came again");
  },

  async "an error ends it, hence overload is none"(feed) {
    for (const status of [403, 429, 503]) {
      await feed.make({});
      await feed.do({ answer: { status } });
      const listener = feed.open();
      await listener.until(`${status}`, () => listener.source.readyState === CLOSED);
      same([listener.errors, listener.opened], [[CLOSED], 0], "one error");
    }
  },

  async "who finds no place comes back until there is one"(feed) {
    await feed.make({ max_connections: 1, history: 10, heartbeat: 100 });
    const first = await feed.enter();
    const second = feed.open();
    await feed.stands("it is sent away, and again", ({ sent_away }) => sent_away >= 3);
    same(second.heard, [], "it hears nothing of it");
    first.source.close();
    await second.until("it is in", () => second.of("ready").length === 1);
    await feed.publish({ data: "for the second" });
    await second.until("it hears", () => second.data("message").join() === "for the second");
  },

  async "later is the word for it, with what was last heard kept"(feed) {
    await feed.make({ history: 10 });
    const listener = await feed.enter();
    await feed.do({ publish: { data: "1" } });
    await listener.until("it is there", () => listener.of("message").length === 1);
    await feed.do({ answer: { later: 5 } }, { close: {} }, { publish: { data: "2" } });
    await feed.stands("it tries", ({ seen }) => seen.length > 3);
    await feed.do({ answer: "open" });
    await listener.until("it has the rest", () => listener.data("message").join() === "1,2");
    same(listener.of("reset"), [], "no gap");
  },

  async "listeners do not hear heartbeats"(feed) {
    await feed.make({ heartbeat: 100 });
    const listener = await feed.enter();
    await feed.stands("some were sent", ({ beats }) => beats >= 3);
    await feed.do({ broadcast: { data: "after them" } });
    await listener.until("it hears this", () => listener.of("message").length === 1);
    same([listener.heard.length, listener.errors], [2, []], "and nothing else");
  },

  async "a gap is told, with the state of things"(feed) {
    await feed.make({ history: 3, snapshot: true });
    const listener = await feed.enter();
    await listener.until("who is new is told", () => listener.of("reset").length === 1);
    same(JSON.parse(listener.data("reset")[0]), { lost: null, snapshot: { sent: 0 } }, "to the newcomer");
    await feed.publish({ data: "1" });
    await listener.until("it hears", () => listener.of("message").length === 1);
    const numbers = range(2, 8).map((n) => ({ publish: { data: `${n}` } }));
    await feed.do({ close: {} }, ...numbers);
    await listener.until("it is told", () => listener.of("reset").length === 2);
    same(JSON.parse(listener.data("reset")[1]), { lost: 7, snapshot: { sent: 8 } }, "how many, and the state");
    await feed.publish({ data: "9" });
    await listener.until("it goes on", () => listener.data("message").includes("9"));
    same(listener.data("message"), ["1", "9"], "what the state has is not told again");
    same(listener.of("message")[1].id.split("-")[1], "9", "its id");
  },

  async "without a state the rest is shown behind the gap"(feed) {
    await feed.make({ history: 3 });
    const listener = await feed.enter();
    const numbers = range(1, 8).map((n) => ({ publish: { data: `${n}` } }));
    await feed.do({ close: {} }, ...numbers);
    await listener.until("the rest is there", () => listener.data("message").includes("8"));
    same(listener.heard.map(({ type, data }) => (type === "ready" ? type : data)).slice(1),
      ["ready", '{"lost":5}', "6", "7", "8"], "in this order");
  },

  async "a new life of the server is a gap of unknown size"(feed) {
    await feed.make({ history: 10 });
    const listener = await feed.enter();
    await feed.publish({ data: "of the old one" });
    await listener.until("it hears", () => listener.of("message").length === 1);
    await feed.make({ history: 10 });
    await listener.until("it is told", () => listener.of("reset").length === 1);
    same(JSON.parse(listener.data("reset")[0]), { lost: null }, "reset");
    await feed.publish({ data: "of the new one" });
    await listener.until("it goes on", () => listener.data("message").length === 2);
    assert(listener.of("message")[0].id.split("-")[0] !== listener.of("message")[1].id.split("-")[0], "the epoch");
  },

  async "who comes twice replaces and stays"(feed) {
    await feed.make({});
    const [first, second] = [await feed.enter([], "?id=tab"), await feed.enter([], "?id=tab")];
    await first.until("it is told", () => first.of("replaced").length === 1);
    await first.until("it is cut off", () => first.errors.length === 1);
    await feed.do({ broadcast: { data: "x" } });
    await second.until("it hears", () => second.of("message").length === 1);
    const { connections, replaced, seen } = await feed.do();
    same([connections, replaced, seen.length, first.of("message").length], [1, 1, 2, 0], "the first stays away");
  },

  async "topics are heard by those who listen to them"(feed) {
    await feed.make({ history: 10 });
    const [red, blue] = [await feed.enter([], "?topic=red"), await feed.enter([], "?topic=blue")];
    await feed.publish({ data: "r", topic: "red" }, { data: "b", topic: "blue" }, { data: "all" });
    await feed.do({ broadcast: { data: "r2", topic: "red" } }, { broadcast: { data: "end" } });
    for (const listener of [red, blue]) await listener.until("the last", () => listener.data("message").includes("end"));
    same([red.data("message"), blue.data("message")], [["r", "all", "r2", "end"], ["b", "all", "end"]], "heard");
  },

  async "the server notices who leaves"(feed) {
    await feed.make({ heartbeat: 100 });
    const listener = await feed.enter();
    await feed.stands("it is there", ({ connections }) => connections === 1);
    listener.source.close();
    await feed.stands("it is gone", ({ connections, gone }) => connections === 0 && gone === 1);
  },
};

/** What only a page has: another origin, whose feeds are at `feed`. */
export const foreign = {
  async "a page that is not allowed hears nothing"(feed) {
    // Where nothing is said of other origins it is let in, and cannot read it.
    for (const [settings, opened] of [[{}, 1], [{ origin: "http://other.example" }, 0]]) {
      await feed.make(settings);
      const listener = feed.open([], "", { withCredentials: true });
      await listener.until("it fails", () => listener.errors.length > 0);
      same([listener.heard, listener.opened, listener.errors], [[], 0, [CLOSED]], "nothing, and it does not come back");
      same((await feed.do()).opened, opened, "whether it was let in");
    }
  },

  async "a page that is allowed comes with its cookies and back"(feed, { origin }) {
    await feed.make({ origin, history: 10 });
    const listener = await feed.enter([], "", { withCredentials: true });
    await feed.do({ close: {} }, { publish: { data: "missed" } });
    await listener.until("it continues", () => listener.data("message").join() === "missed");
    same(listener.heard[0].origin, new URL(feed.url).origin, "the origin that listeners see");
    await feed.do({ answer: { later: 5 } }, { close: {} }, { publish: { data: "2" } });
    await feed.stands("it tries", ({ seen }) => seen.length > 3);
    await feed.do({ answer: "open" });
    await listener.until("it continues", () => listener.data("message").join() === "missed,2");
    const { seen } = await feed.do();
    same(seen.map(({ cookie, method }) => `${method} ${cookie}`), seen.map(() => "GET who=ann"), "cookies");
    await feed.do({ answer: "stop" }, { close: {} });
    await listener.until("it gives up", () => listener.source.readyState === CLOSED);
  },

  async "who is sent away without a word for the page's origin does not come back"(feed, { origin }) {
    await feed.make({ origin });
    const listener = await feed.enter();
    await feed.make({}); // the same feed, which knows nothing of other origins
    await listener.until("it is over", () => listener.source.readyState === CLOSED);
    same(listener.of("ready").length, 1, "it was in once");
  },

  async "without credentials it comes without cookies"(feed, { origin }) {
    await feed.make({ origin });
    await feed.enter();
    const { seen } = await feed.do();
    same(seen[0].cookie, null, "cookies");
  },

  async "a long id asks first, if the browser asks, and is let in"(feed, { origin }) {
    await feed.make({ origin, echo: true });
    const id = `${"long".repeat(40)}"()`;
    const listener = await feed.enter([], "", { withCredentials: true });
    await feed.do({ broadcast: { data: "x", id } }, { close: {} });
    await listener.until("it is back", () => listener.of("message").length === 3);
    same(listener.data("message")[2], JSON.stringify(id), "the id");
    const { seen } = await feed.do();
    return seen.map(({ method }) => method).join();
  },

  async "a client made of fetch asks first and is let in"(feed, { origin }) {
    await feed.make({ origin });
    const ask = () => fetch(`${feed.url}/events`, { headers: { "last-event-id": "7", authorization: "x" } });
    const response = await ask();
    same([response.status, response.type], [200, "cors"], "it is let in");
    await response.body.cancel();
    const { seen } = await feed.do();
    same(seen.map(({ method }) => method), ["OPTIONS", "GET"], "it asked");
    await feed.make({});
    same(await ask().then(() => "in", () => "refused"), "refused", "where it is not allowed");
  },
};

/** Runs one and gives what it says. */
export const play = async (world, name, all = scenarios) => {
  const feed = new Feed(world, `${world.prefix}-${Object.keys(all).indexOf(name)}`);
  try {
    return (await all[name](feed, world)) ?? "ok";
  } finally {
    await feed.close();
  }
};
