// Preloaded into every Node program of a sandbox whose only way out is the runner's proxy. From Node 26 on, `fetch` never
// delivers the body of an answer that came through a proxy dispatcher of an older undici, as agents bundle one (Gemini
// CLI 0.61 does). Node's own dispatcher goes to the same proxy.
"use strict";
if (Number(process.versions.node.split(".")[0]) >= 26) {
  const fetchAsBuilt = globalThis.fetch;
  globalThis.fetch = function fetch(input, init) {
    if (init?.dispatcher === undefined) return fetchAsBuilt.call(this, input, init);
    const { dispatcher: _foreign, ...rest } = init;
    return fetchAsBuilt.call(this, input, rest);
  };
}
