import { once } from "node:events";
import { createConnection } from "node:net";
import type { SessionParts } from "../../../dist/confined/jail.js";
import { wholeParts } from "../../../dist/confined/session.js";
import type { RemovableMechanism } from "./mechanisms.ts";

/** The runner's way to ports inside: to any port, or without the relay to the address that this host would use. */
export function weakenedEntrance(without: readonly RemovableMechanism[]): SessionParts["enter"] {
  if (without.includes("inbound relay")) return enterHost;
  if (!without.includes("inbound port list")) return wholeParts.enter;
  return (spec, jails, port) => {
    const boundary = { ...spec.boundary, inbound: [port] };
    return wholeParts.enter({ ...spec, boundary }, jails, port);
  };
}

/** Ports of jails that have the host's network are ports of its loopback. */
const enterHost: SessionParts["enter"] = async (_spec, _jails, port) => {
  const connection = createConnection({ host: "127.0.0.1", port });
  await once(connection, "connect");
  return connection;
};
