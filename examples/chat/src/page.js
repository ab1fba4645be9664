import { RoomClient, codes } from "/client.js";

const MOST_ROWS = 500;
const STATES = { connecting: "Connecting", open: "Connected", waiting: "Reconnecting", stopped: "Disconnected" };
const WHY = {
  [codes.REPLACED]: "This name is in use in another tab.",
  [codes.KICKED]: "You were asked to leave.",
  1008: "That was too much at once.",
};
const $ = (id) => document.getElementById(id);

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text; // names and messages are foreign text: never markup
  return made;
}

function show(row) {
  const list = $("messages");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  list.append(row);
  while (list.childElementCount > MOST_ROWS) list.firstElementChild.remove();
  if (atEnd) list.scrollTop = list.scrollHeight;
}

function said({ data, from, at, seq }) {
  const row = element("li", "", "");
  row.dataset.seq = seq;
  const time = element("time", "", new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
  time.dateTime = new Date(at).toISOString();
  row.append(element("strong", "", from ?? "The room"), ": ", element("span", "text", String(data?.text ?? "")), time);
  show(row);
}

function note(text = "") {
  $("note").textContent = text;
  $("note").hidden = !text;
}

function enter(room, name) {
  const client = new RoomClient(`/ws?${new URLSearchParams({ room, name })}`);
  $("enter").hidden = true;
  $("room").hidden = false;
  $("title").textContent = document.title = room;
  $("text").focus();

  const showMembers = () => {
    $("count").textContent = client.count;
    $("members").replaceChildren(...[...client.members.keys()].sort().map((id) => element("li", "", id)));
  };
  const tell = (text) => ({ member, replayed }) => {
    if (!replayed) showMembers();
    show(element("li", "note", `${member} ${text}`));
  };
  client.addEventListener("message", said);
  client.addEventListener("joined", tell("is here"));
  client.addEventListener("left", tell("has left"));
  client.addEventListener("gap", ({ lost }) => show(element("li", "note", `${lost ?? "Some"} messages are lost`)));
  client.addEventListener("open", () => {
    showMembers();
    note();
  });
  client.addEventListener("refused", () => note("A message was too long."));
  client.addEventListener("stopped", ({ code, reason }) => note(WHY[code] ?? reason));
  client.addEventListener("state", ({ state }) => {
    $("state").textContent = STATES[state];
    $("state").dataset.state = state;
    $("again").hidden = state !== "stopped";
  });
  $("again").addEventListener("click", () => client.connect());
  $("say").addEventListener("submit", (event) => {
    event.preventDefault();
    const outcome = client.send(JSON.stringify({ text: $("text").value }));
    if (outcome === "refused") return note("Not sent. Try again in a moment.");
    note(outcome === "queued" ? "Sent when the connection is back." : "");
    $("say").reset();
  });
}

$("name").value = localStorage.getItem("name") ?? "";
$("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  const [name, room] = [$("name").value.trim(), $("room-name").value.trim()];
  if (!name || !room) return;
  localStorage.setItem("name", name);
  enter(room, name);
});
const asked = new URLSearchParams(location.search);
if (asked.get("room")) $("room-name").value = asked.get("room");
if (asked.get("room") && asked.get("name")) enter(asked.get("room"), asked.get("name"));
