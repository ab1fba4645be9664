// What a page of a room does, without the looks: `seen` is what the test reads.
import { RoomClient } from "/client.js";

const seen = { data: [], joined: [], left: [], gaps: [], replayed: 0, opened: 0, resumed: 0, closes: 0, pause: 0 };
const client = new RoomClient(`/ws${location.search}`, {
  after: sessionStorage.getItem("position"),
  minDelay: 20,
  maxDelay: 3_600_000, // which nobody waits for: the network is back before
});
const on = (type, listener) => client.addEventListener(type, listener);
on("message", ({ data, replayed }) => {
  seen.data.push(data);
  seen.replayed += replayed;
  sessionStorage.setItem("position", client.position);
});
on("binary", ({ data, from }) => seen.data.push(`${from}: ${[...data]}`));
on("joined", ({ member }) => seen.joined.push(member));
on("left", ({ member }) => seen.left.push(member));
on("gap", ({ after, lost }) => seen.gaps.push([after, lost]));
on("open", ({ resumed }) => {
  seen.opened += 1;
  seen.resumed += resumed;
});
on("close", ({ delay }) => {
  seen.closes += 1;
  seen.pause = delay;
});
on("state", () => (document.querySelector("#log").textContent += `${client.state} ${client.code ?? ""} ${client.position ?? ""}\n`));
Object.assign(window, { client, seen });
