// Python for one page: Pyodide in a worker that has no network, no storage and no page.
//
// The worker is made inside a sandboxed frame. The frame has an origin of its own, so it sees nothing of the site, and its
// policy forbids every request; a worker made from a blob inherits both. The page fetches the files itself and hands them
// over, so the browser's cache keeps them.

const FILES = ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"];
const NOWHERE = "https://pyodide.invalid/"; // an address that Pyodide asks, and that is answered from what was handed over
const POLICY = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:";
const FRAME = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${POLICY}"><script>
addEventListener("message", ({ data: { source }, ports }) => {
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  worker.onerror = (event) => ports[0].postMessage({ did: "broken", text: event.message || "the worker could not start" });
  worker.postMessage({ port: ports[1] }, [ports[1]]);
}, { once: true });
</script>`;

/** What runs in the worker. It is turned into text, so it may name nothing from outside. */
function inside() {
  const forbidden = [
    "fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "EventSource", "importScripts", "indexedDB", "caches",
    "BroadcastChannel", "Worker", "SharedWorker", "RTCPeerConnection", "WebTransport", "FileReaderSync", "Notification",
  ];
  let python, port;

  const begin = async ({ files, code, graphs }) => {
    globalThis.fetch = async (address) => {
      const name = String(address.url ?? address).split("/").pop();
      const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
      if (!files[name]) throw new TypeError(`there is no network here: ${name}`);
      return new Response(files[name], { headers: { "Content-Type": type } });
    };
    python = await globalThis.loadPyodide({
      indexURL: "https://pyodide.invalid/",
      stdLibURL: "https://pyodide.invalid/python_stdlib.zip",
      jsglobals: Object.create(null),
      lockFileContents: {
        info: {
          abi_version: "2026_0",
          arch: "wasm32",
          platform: "emscripten",
          python: "3.14",
          version: "314.0.7",
        },
        packages: {},
      },
      packageBaseUrl: "https://pyodide.invalid/",
      stdout: () => {},
      stderr: () => {},
    });
    python.unpackArchive(code, "zip", { extractDir: "/course" });
    if (graphs) python.unpackArchive(graphs, "zip", { extractDir: "/course" });
    python.runPython("import sys; sys.path.insert(0, '/course'); import desk");
    for (const name of ["js", "pyodide_js"]) python.unregisterJsModule(name);
    python.runPython(`
import builtins, sys
for name in [n for n in sys.modules if n.partition(".")[0] in ("js", "pyodide_js", "pyodide", "_pyodide", "_pyodide_core")]:
    del sys.modules[name]
sys.meta_path[:] = [f for f in sys.meta_path if "jsfinder" not in type(f).__name__.lower()]
class _Closed:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("js", "pyodide_js", "pyodide", "_pyodide", "_pyodide_core"):
            raise ModuleNotFoundError(f"there is no {name} in an exercise", name=name)
sys.meta_path.insert(0, _Closed())
`);
    for (const name of forbidden) {
      for (let owner = globalThis; owner; owner = Object.getPrototypeOf(owner)) {
        try { delete owner[name]; } catch { /* not to be deleted: the policy forbids its use */ }
      }
    }
  };

  const act = {
    begin,
    data({ text }) {
      const desk = python.pyimport("desk");
      desk.begin(text, (sentence) => port.postMessage({ did: "first", text: sentence }));
      desk.destroy();
    },
    check({ source, call }) {
      const desk = python.pyimport("desk");
      const text = desk.check(source, call);
      desk.destroy();
      return { text, memory: python._module.HEAPU8.length };
    },
  };

  onmessage = ({ data }) => {
    port = data.port;
    port.onmessage = async ({ data: { id, act: name, ...given } }) => {
      try {
        port.postMessage({ did: "done", id, ...(await act[name](given)) });
      } catch (error) {
        port.postMessage({ did: "failed", id, text: String(error.message ?? error).split("\n").filter(Boolean).pop() });
      }
    };
    port.postMessage({ did: "ready" });
  };
}

/** The two scripts of Pyodide as one plain script: a worker without an origin can load no module. */
function scripts(files) {
  const text = (name) => new TextDecoder().decode(files[name]).replace(/\/\/# sourceMappingURL=.*/, "");
  const program = text("pyodide.asm.mjs").replaceAll("import.meta.url", JSON.stringify(`${NOWHERE}pyodide.asm.mjs`))
    .replace("export default _createPyodideModule", "globalThis.createPython = _createPyodideModule");
  const loader = text("pyodide.mjs")
    .replace(/async (\w+)=>await import\(\1\)/, "async () => ({ default: globalThis.createPython })")
    .replace(/export\{(\w+) as loadPyodide,[^}]*\}/, "globalThis.loadPyodide = $1");
  return `${program}\n{\n${loader}\n}\n`;
}

/** Bytes of a file of the site; `seen` is called with how many have come. */
async function bytes(address, seen) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} could not be loaded (${answer.status})`);
  const parts = [];
  const reader = answer.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    seen(value.length);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Python in a sandbox. `load` fetches it once; `check` starts it where it is not running; `stop` ends it at once. */
export class Python {
  constructor(root) {
    this.root = root; // the address of the site's top folder
    this.files = null;
    this.loading = null;
    this.running = null; // of which chapter
  }

  /** Fetch all files, once. `progress` is called with the share that has come. */
  load(chapter, needsGraphs, progress = () => {}) {
    this.loading ??= this.fetched(chapter, needsGraphs, progress).catch((error) => {
      this.loading = null;
      throw error;
    });
    return this.loading;
  }

  async fetched(chapter, needsGraphs, progress) {
    const sizes = await (await fetch(new URL("answers/sizes.json", this.root), { cache: "no-cache" })).json();
    const names = {
      code: `answers/python-${sizes.version}.zip`,
      data: `answers/chapter${chapter}-${sizes.version}.json`,
    };
    if (needsGraphs) names.graphs = `answers/networkx-${sizes.version}.zip`;
    for (const name of FILES) names[name] = `pyodide/${name}?${sizes.pyodide}`;
    const all = Object.values(names).reduce(
      (sum, name) => sum + (sizes.bytes[name.replace(`-${sizes.version}`, "").split("?")[0]] ?? 0),
      0,
    );
    let come = 0;
    const seen = (count) => progress(Math.min(1, (come += count) / all));
    const got = await Promise.all(
      Object.entries(names).map(async ([key, name]) => [key, await bytes(new URL(name, this.root), seen)]),
    );
    const { code, data, graphs, ...files } = Object.fromEntries(got);
    this.files = { files, code, graphs, data: new TextDecoder().decode(data) };
    this.loaded = come;
  }

  /** Start a worker. */
  async start() {
    this.stop();
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("aria-hidden", "true");
    frame.title = "Python";
    frame.hidden = true;
    frame.srcdoc = FRAME;
    const own = new MessageChannel(), errors = new MessageChannel();
    this.frame = frame;
    this.port = own.port1;
    this.waiting = new Map();
    this.ids = 0;
    const ready = new Promise((resolve, reject) => {
      errors.port1.onmessage = ({ data }) => reject(new Error(data.text));
      own.port1.onmessage = ({ data }) => {
        if (data.did === "ready") resolve();
        if (data.did === "first") this.first?.(data.text);
        const waits = this.waiting.get(data.id);
        this.waiting.delete(data.id);
        if (data.did === "done") waits?.resolve(data);
        if (data.did === "failed") waits?.reject(new Error(data.text));
      };
    });
    errors.port1.start();
    frame.addEventListener(
      "load",
      () => {
        frame.contentWindow.postMessage({ source: `${scripts(this.files.files)}(${inside})()` }, "*", [
          errors.port2,
          own.port2,
        ]);
      },
      { once: true },
    );
    document.body.append(frame);
    await ready;
    const { files, code, graphs, data } = this.files;
    await this.ask("begin", { files, code, graphs });
    await this.ask("data", { text: data });
    this.running = true;
  }

  ask(act, given) {
    const id = ++this.ids;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.port.postMessage({ id, act, ...given });
    });
  }

  /**
   * The verdict on an answer. After `seconds` without one the worker is ended, and the next check starts another.
   * `first` is called with the first wrong case as soon as it is known.
   */
  async check(source, call, { seconds = 45, first = () => {} } = {}) {
    if (!this.running) await this.start();
    let known = "";
    this.first = (text) => first((known = text));
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(() => {
        this.stop();
        resolve({
          kind: "wrong",
          sentence:
            known ||
            `your code ran for ${seconds} seconds, so we stopped it. Does it contain a loop that never ends? ` +
              "Look at the condition that should end the loop, and at what changes in each round.",
          printed: "",
          stopped: !known,
        });
      }, 1000 * seconds);
    });
    try {
      const found = await Promise.race([this.ask("check", { source, call }), late]);
      if (!found.text) return found;
      this.memory = found.memory;
      return JSON.parse(found.text);
    } catch (error) {
      this.stop();
      const memory = /memory|allocation|out of bounds|Maximum call stack/i.test(error.message);
      const sentence = memory
        ? "your code needs more memory than the browser gives, so we stopped it. Is a tensor or a list far too large?"
        : `Python stopped (${error.message}). Press Check again to restart it.`;
      return { kind: "wrong", sentence, printed: "", stopped: true };
    } finally {
      clearTimeout(timer);
    }
  }

  stop() {
    this.frame?.remove();
    this.frame = null;
    this.running = false;
  }
}
