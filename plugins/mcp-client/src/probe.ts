import { once } from "node:events";
import { createServer } from "node:http";
import type { Finding } from "@ambit/core/plugin";
import { AddressRefused, whyClosed } from "@ambit/egress";
import { exchange } from "@ambit/egress/client";

/**
 * A loopback listener under a made-up name: reached if its range is listed (the control), refused if it isn't.
 */
export async function probeHttpSource(signal: AbortSignal): Promise<readonly Finding[]> {
  const listener = createServer((_request, response) => response.end("reached"));
  // Every process of this host can connect.
  listener.maxConnections = 16;
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening", { signal });
  const address = listener.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  try {
    const listed = await reaches(port, ["127.0.0.0/8"], signal);
    const unlisted = await reaches(port, [], signal);
    const how =
      "a loopback listener was reached with its range listed, and refused before a connection without";
    return (["network.allow-host", "network.allow-cidr"] as const).map((capability) =>
      listed && !unlisted
        ? { capability, proven: true, how }
        : {
            capability,
            proven: false,
            reason: listed
              ? "an unlisted loopback address was reached"
              : "the control failed: loopback can't be reached",
            fix: "probe again; if it stays, remove the MCP servers from the request",
          },
    );
  } finally {
    listener.close();
    listener.closeAllConnections();
  }
}

async function reaches(port: number, ranges: readonly string[], signal: AbortSignal): Promise<boolean> {
  const rules = ranges.map((cidr) => ({ kind: "range", cidr, family: 4 }) as const);
  const guard = {
    whyClosed: (address: string) => whyClosed(address, rules),
    lookup: async () => ["127.0.0.1"],
  };
  const url = new URL(`http://probe.invalid:${port}/`);
  try {
    return (await exchange({ url, headers: {} }, guard, { maxBytes: 100, signal })).body === "reached";
  } catch (error) {
    // Only this plugin's own refusal counts: any other failure would prove nothing.
    if (error instanceof AddressRefused) return false;
    throw error;
  }
}
