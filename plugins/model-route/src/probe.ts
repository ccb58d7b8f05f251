import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import type { Finding, ModelUse } from "@ambit/core/plugin";
import { openResponse } from "@ambit/egress/client";
import { configSchema } from "./config.js";
import { HeldBytes } from "./request/read-body.js";
import { openRoute } from "./route.js";

/**
 * Sends a request through a route to a listener on this host's loopback that repeats the credential it got, in a header
 * and in its body. The control is a direct request, whose response contains the credential.
 */
export async function probeSecrets(
  signal: AbortSignal,
  open: typeof openRoute = openRoute,
): Promise<Finding> {
  const capability = "secrets.hidden";
  const fix = "see the runner's log; this host's loopback interface must let the runner talk to itself";
  const secret = `sk-probe-${randomUUID()}`;
  const body = JSON.stringify({ model: "probe" });
  const server = createServer((request, response) => {
    const key = String(request.headers["x-api-key"]);
    response.writeHead(200, { "content-type": "application/json", "request-id": key });
    response.end(JSON.stringify({ key }));
  });
  // Every process of this host can connect.
  server.maxConnections = 16;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const endpoint = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  const use: ModelUse = {
    protocol: "anthropic",
    endpoint,
    basePath: "",
    credentials: { ANTHROPIC_API_KEY: secret },
    headers: {},
    model: "probe",
    auxiliaryModels: [],
  };
  const { route, close } = open(use, {
    config: configSchema.parse({}),
    held: new HeldBytes(body.length),
    lookup: undefined,
    scope: {
      signal,
      admit: async () => ({ allowed: true }),
      begin: () => ({ used: () => {}, ended: () => {} }),
      onDecision: () => {},
      boundary: { network: { mode: "off", rules: [] } },
    },
  });
  const path = "/v1/messages";
  try {
    // With an agent of its own: variables of this process must not lead it through a proxy.
    const direct = await openResponse(
      { method: "POST", url: new URL(`${endpoint}${path}`), headers: { "x-api-key": secret }, body },
      {},
      signal,
    );
    const carried = await route.handle(new Request(`http://127.0.0.1${path}`, { method: "POST", body }));
    const control = [...direct.rawHeaders, await text(direct)].join("\n");
    const seen = [...carried.headers.values(), await carried.text()].join("\n");
    const failed = (reason: string): Finding => ({ capability, proven: false, reason, fix });
    if (carried.status !== 200) return failed(`the route answered its probe with ${carried.status}`);
    if (!control.includes(secret))
      return failed("the control, a request without the route, came back without its key");
    if (seen.includes(secret)) return failed("a response contained the key");
  } finally {
    close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  return {
    capability,
    proven: true,
    how: "a listener repeated its key in a header and in its body: the response to a direct request contained it, and the one through the route didn't",
  };
}
