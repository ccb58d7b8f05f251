// Preloaded into every Node program of a sandbox whose network is a boundary's. Older Nodes ignore HTTP_PROXY: there it
// sends `fetch` and `http(s)` to the proxy by CONNECT, where the boundary decides. What goes another way has no network.
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
const heedsVariables = major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
if (!heedsVariables && process.env.HTTP_PROXY) {
  install(new URL(process.env.HTTP_PROXY));
}
if (major >= 26) dropDispatchers();

/**
 * From Node 26 on, `fetch` never delivers the body of an answer that came through a proxy dispatcher of an older
 * undici, as agents bundle one (Gemini CLI 0.61 does). Node's own dispatcher goes to the same proxy.
 */
function dropDispatchers() {
  const fetchAsBuilt = globalThis.fetch;
  globalThis.fetch = function fetch(input, init) {
    if (init?.dispatcher === undefined) return fetchAsBuilt.call(this, input, init);
    const { dispatcher: _foreign, ...rest } = init;
    return fetchAsBuilt.call(this, input, rest);
  };
}

function install(proxy) {
  const http = require("node:http");
  const https = require("node:https");
  const net = require("node:net");
  const tls = require("node:tls");
  const unproxied = (process.env.NO_PROXY ?? "").toLowerCase().split(",");
  const isDirect = (name) => {
    const host = name.toLowerCase().replace(/^\[|\]$/g, "");
    return unproxied.includes(host) || (unproxied.includes("127.0.0.0/8") && /^127(\.\d+){3}$/.test(host));
  };
  const goesDirectly = ({ socketPath, host, hostname }) =>
    Boolean(socketPath) || isDirect(hostname ?? host ?? "localhost");

  /** Calls back with a socket on which the destination's own server speaks. */
  const tunnel = (host, port, done) => {
    const target = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
    const request = http.request({
      // Of its own: an agent's would come back here.
      createConnection: () => net.connect({ host: proxy.hostname, port: Number(proxy.port) }),
      method: "CONNECT",
      path: target,
      headers: { host: target },
    });
    request.once("error", (error) => done(error));
    request.once("connect", (response, socket, head) => {
      if (response.statusCode === 200) return done(null, socket);
      let said = head.toString("utf8");
      socket.on("data", (chunk) => {
        said += chunk;
      });
      socket.once("close", () => {
        const error = new Error(
          `The proxy answered ${response.statusCode} ${response.statusMessage} ${said}`,
        );
        done(Object.assign(error, { code: "ERR_PROXY_TUNNEL", status: response.statusCode }));
      });
    });
    request.end();
  };

  const secure = (socket, host, options) =>
    tls.connect({ ...(net.isIP(host) ? {} : { servername: host }), ...options, socket });

  const connectPlainly = http.Agent.prototype.createConnection;
  http.Agent.prototype.createConnection = function createConnection(...given) {
    const [options = {}, done = () => undefined] = given;
    if (goesDirectly(options)) return connectPlainly.apply(this, given);
    tunnel(options.host, options.port, done);
    return undefined;
  };

  const connectSecurely = https.Agent.prototype.createConnection;
  https.Agent.prototype.createConnection = function createConnection(...given) {
    const [options, done = () => undefined] = given;
    if (typeof options !== "object" || goesDirectly(options)) return connectSecurely.apply(this, given);
    const { host, path: _pathOfTheRequest, ...rest } = options;
    tunnel(host, options.port, (error, socket) =>
      error ? done(error) : done(null, secure(socket, host, rest)),
    );
    return undefined;
  };

  const fetchAsBuilt = globalThis.fetch;
  if (typeof fetchAsBuilt !== "function") return;
  const place = Symbol.for("undici.globalDispatcher.1");
  let dispatcher;

  /** Node's own agent for fetch, with our way to connect. Made at the first fetch: most programs never do one. */
  const makeDispatcher = () => {
    if (globalThis[place] === undefined) fetchAsBuilt("data:,").catch(() => undefined);
    const Agent = globalThis[place].constructor;
    const direct = globalThis[place];
    const proxied = new Agent({
      connect: ({ hostname, protocol, port, servername }, done) => {
        const host = hostname.replace(/^\[|\]$/g, "");
        tunnel(host, port || (protocol === "https:" ? 443 : 80), (error, socket) => {
          if (error) return done(error, null);
          if (protocol !== "https:") return done(null, socket);
          const secured = secure(socket, host, {
            ...(servername ? { servername } : {}),
            ALPNProtocols: ["http/1.1"],
          });
          secured.once("error", (failure) => done(failure, null));
          secured.once("secureConnect", () => done(null, secured));
        });
      },
    });
    const choose = (options) => (isDirect(new URL(options.origin).hostname) ? direct : proxied);
    const dispatch = proxied.dispatch.bind(proxied);
    proxied.dispatch = (options, handler) =>
      choose(options) === direct ? direct.dispatch(options, handler) : dispatch(options, handler);
    return proxied;
  };

  globalThis.fetch = function fetch(...given) {
    if (dispatcher === undefined) {
      dispatcher = makeDispatcher();
      globalThis[place] = dispatcher;
    }
    return fetchAsBuilt.apply(this, given);
  };
}
