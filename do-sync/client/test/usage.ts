// Compiles, and does not where it must not: what the types of the client promise.
import { RoomClient, codes, retries, type Sendable, type State } from "../client.js";

interface Line { text: string }
interface Profile { colour: string }
interface Typing { who: string }

const client = new RoomClient<Line, Profile, Typing, Line[]>("/ws?room=lobby", {
  after: sessionStorage.getItem("position"),
  protocols: ["chat"],
  maxFailures: 10,
});
client.addEventListener("message", ({ data, seq, at, from, replayed }) => {
  const text: string = data.text;
  const moment: Date = new Date(at);
  const sender: string | undefined = from;
  sessionStorage.setItem("position", client.position ?? "");
  return [text, moment, sender, seq + 1, !replayed];
}, { once: true });
client.addEventListener("joined", ({ member, data }) => [member.length, data?.colour]);
client.addEventListener("binary", ({ data }) => data.buffer.byteLength);
client.addEventListener("event", ({ data }) => data.who.length);
client.addEventListener("snapshot", ({ data }) => data.map((line) => line.text));
client.addEventListener("gap", ({ after, lost }) => after.length + (lost ?? 0));
client.addEventListener("close", ({ code, delay }) => [retries(code), delay / 1000]);
client.addEventListener("stopped", ({ code, unsent }) => code === codes.REPLACED && unsent.every((it: Sendable) => it));
client.addEventListener("state", { handleEvent: ({ state }) => { const now: State = state; return now; } });
for (const [id, profile] of client.members) id.concat(profile.colour);
const outcome: "sent" | "queued" | "refused" = client.send(JSON.stringify({ text: "hello" }));
client.send(new Uint8Array([1]));

// @ts-expect-error objects have no form on the wire
client.send({ text: "hello" });
// @ts-expect-error only the room changes who is there
client.members.set("eve", { colour: "red" });
// @ts-expect-error the client decides
client.state = "open";
// @ts-expect-error there is no such event
client.addEventListener("massage", () => {});
// @ts-expect-error a number
new RoomClient("/ws", { minDelay: "1s" });

const untyped = new RoomClient(async () => new URL("wss://example.invalid/ws"), { protocols: async () => "token" });
// @ts-expect-error nothing is known of it
untyped.addEventListener("message", ({ data }) => data.text);
untyped.addEventListener("message", ({ data }) => typeof data === "string" && data.length);
export { outcome };
