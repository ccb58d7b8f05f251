import { guardedLookup, type Lookup } from "@ambit/egress";
import { Agent, type Dispatcher } from "undici";
import type { ModelRouteConfig } from "../config.js";
import { whyAddressClosed } from "./endpoint.js";

/** Kept-alive connections of one route to its one endpoint. TLS is verified, whatever the process's variables are. */
export function connectionsTo(endpoint: URL, config: ModelRouteConfig, lookup?: Lookup): Dispatcher {
  const { connectMs, firstByteMs, idleMs } = config.limits;
  return new Agent({
    connections: config.limits.concurrentRequests,
    headersTimeout: firstByteMs,
    bodyTimeout: idleMs,
    allowH2: false,
    connect: {
      timeout: connectMs,
      rejectUnauthorized: true,
      // A literal address isn't resolved; it was checked when the route was planned.
      lookup: guardedLookup((address) => whyAddressClosed(endpoint, address, config), lookup),
    },
  });
}
