// The Worker as it is, and what its tests need beside it: GET /__evict takes all objects out of memory, which else
// needs ten idle seconds and cannot be seen, and GET /__seen tells what the object was asked for since the start.

import Worker, { SyncRoom as Room } from "./index.js";
import unsafe from "workerd:unsafe";

const seen = { constructed: 0, fetch: 0, webSocketMessage: 0, webSocketClose: 0, webSocketError: 0 };

export const SyncRoom = new Proxy(Room, {
  construct(target, args, newTarget) {
    seen.constructed += 1;
    return new Proxy(Reflect.construct(target, args, newTarget), {
      get(instance, name) {
        const value = Reflect.get(instance, name);
        if (typeof value !== "function" || !(name in seen)) return value;
        return (...args) => {
          seen[name] += 1;
          return value.apply(instance, args);
        };
      },
    });
  },
});

export default class extends Worker {
  async fetch(request) {
    switch (new URL(request.url).pathname) {
      case "/__evict":
        await unsafe.evictAllDurableObjects({ webSockets: "hibernate" });
        return new Response("evicted");
      case "/__seen":
        return Response.json(seen);
      default:
        return super.fetch(request);
    }
  }
}
