const MOST_ROWS = 10_000;
const AGAIN_MS = 3_000;
const STATES = { connecting: "Connecting", open: "Live", waiting: "Reconnecting", ended: "Ended" };
const $ = (id) => document.getElementById(id);

function show(text) {
  const list = $("lines");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const row = document.createElement("li");
  row.textContent = text; // what a build writes is foreign text: never markup
  list.append(row);
  while (list.childElementCount > MOST_ROWS) {
    list.firstElementChild.remove();
    list.start += 1; // the others keep their numbers
  }
  if (atEnd) list.scrollTop = list.scrollHeight;
}

function tell(id, text) {
  $(id).textContent = text;
  $(id).hidden = !text;
}

function setState(state) {
  $("state").textContent = STATES[state];
  $("state").dataset.state = state;
}

/** `last`: the id of the last event that was seen; what is behind it comes. */
function follow(build, last = "") {
  const from = last && `?${new URLSearchParams({ lastEventId: last })}`;
  const source = new EventSource(`/builds/${encodeURIComponent(build)}/log${from}`);
  const on = (name, listener) =>
    source.addEventListener(name, (event) => {
      last = event.lastEventId;
      listener(event.data);
    });
  on("ready", () => setState("open"));
  on("line", show);
  on("reset", (data) => tell("note", `${JSON.parse(data).lost ?? "Some"} lines are lost`));
  on("end", (result) => {
    source.close();
    setState("ended");
    tell("result", result || "No result");
  });
  source.addEventListener("error", () => {
    setState("waiting");
    // It comes back by itself when the connection is lost, but not when something answers that is no stream, such as a
    // proxy whose server is away.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN_MS, build, last);
  });
}

const build = new URLSearchParams(location.search).get("build");
if (build) {
  $("enter").hidden = true;
  $("build").hidden = false;
  $("title").textContent = document.title = build;
  follow(build);
}
