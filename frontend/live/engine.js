// The page's side of the worker: calls are promises.
/** @param {(said: any) => void} tell */
export function engine(tell, file = "worker.js") {
  let worker = null, next = 0;
  const waiting = new Map();
  const fail = (sentence) => {
    for (const { reject } of waiting.values()) reject(new Error(sentence));
    waiting.clear();
  };
  const start = () => {
    worker = new Worker(new URL(file, import.meta.url), { type: "module" });
    worker.onerror = (event) => {
      event.preventDefault();
      worker = null;
      fail("The model could not be started in this browser. Its files are incomplete, or the browser is too old.");
    };
    worker.onmessage = ({ data }) => {
      if (data.number === undefined) return tell(data);
      const { resolve, reject } = waiting.get(data.number) ?? {};
      waiting.delete(data.number);
      if (data.error === undefined) resolve?.(data.value);
      else reject?.(new Error(data.error));
    };
  };
  return (call, rest = {}) => new Promise((resolve, reject) => {
    if (!worker) start();
    waiting.set((next += 1), { resolve, reject });
    worker.postMessage({ call, number: next, ...rest });
  });
}
