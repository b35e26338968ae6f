// A service worker for this folder alone. It keeps the page's own files, so that the page opens without a network once its
// model was loaded; and it adds the two headers without which a browser gives a page one thread only. The parts of the model
// are left to worker.js, which checks and keeps them itself.
const VERSION = "", FILES = []; // tools/live.py writes both: a hash of the files, and their names
const KEPT = `connection-bottlenecks-page-${VERSION}`;
const PART = /\/(model|runtime|tokenizer)-[0-9a-f]+\.\w+$/;

self.addEventListener("install", (event) => event.waitUntil((async () => {
  await (await caches.open(KEPT)).addAll(FILES.map((name) => new Request(name, { cache: "no-cache" })));
  await self.skipWaiting();
})()));

self.addEventListener("activate", (event) =>
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys())
        if (name.startsWith("connection-bottlenecks-page-") && name !== KEPT) await caches.delete(name);
  await self.clients.claim();
})()));

function isolated(answer) {
  if (!answer.ok || !answer.body || answer.type === "opaque") return answer;
  const headers = new Headers(answer.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  return new Response(answer.body, { status: answer.status, statusText: answer.statusText, headers });
}

async function answered(request) {
  const found = await fetch(request).catch((error) => error);
  if (found instanceof Response && found.ok) return isolated(found);
  const kept = await (await caches.open(KEPT)).match(request, { ignoreSearch: true });
  if (kept) return isolated(kept);
  if (found instanceof Response) return found;
  throw found;
}

self.addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== "GET" || origin !== self.location.origin || PART.test(pathname)) return;
  event.respondWith(answered(event.request));
});
