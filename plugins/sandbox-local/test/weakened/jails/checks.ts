import { type EgressChecks, egressChecks } from "@ambit/egress/proxy";
import type { RemovableMechanism } from "./mechanisms.ts";

/** The proxy's comparisons of names, except those listed. */
export function weakenedChecks(without: readonly RemovableMechanism[]): EgressChecks {
  return {
    firstFlight: without.includes("server name check")
      ? () => ({ verdict: "pass" })
      : egressChecks.firstFlight,
    destination: without.includes("host header check") ? withOwnHost : egressChecks.destination,
  };
}

/** Reads the request as if its Host header matched its target. */
const withOwnHost: EgressChecks["destination"] = (request, tunnel) => {
  const authority = tunnel?.target ?? /^http:\/\/([^/?#]*)/i.exec(request.url ?? "")?.[1] ?? "";
  const host = typeof authority === "string" ? authority : `${authority.host}:${authority.port}`;
  const rawHeaders = request.rawHeaders.map((text, index, all) =>
    index % 2 === 1 && all[index - 1]?.toLowerCase() === "host" ? host : text,
  );
  return egressChecks.destination(Object.create(request, { rawHeaders: { value: rawHeaders } }), tunnel);
};
