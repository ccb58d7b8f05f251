import type { Issue } from "../contract/index.js";
import type { SandboxBackend } from "../plugin/index.js";
import { callPure } from "./call-pure.js";
import type { BoundedRequest } from "./requirements.js";

/** Why a sandbox can't carry connections to the request's `ports`. Missing means no: they are never dropped instead. Pure. */
export function inboundIssues(
  { boundary }: Pick<BoundedRequest, "boundary">,
  sandbox: SandboxBackend,
): readonly Issue[] {
  if (boundary.inbound === undefined) return [];
  const carried =
    callPure(sandbox, "carriesInbound", () => sandbox.carriesInbound?.(boundary)) ?? carriesNone;
  if (carried === true) return [];
  return [
    {
      path: "ports",
      message: `sandbox '${sandbox.name}' can't carry them: ${carried.reason}; ${carried.fix}`,
    },
  ];
}

const carriesNone = {
  reason: "it carries no connection to a port inside",
  fix: 'name a sandbox that does, such as "local", or leave ports out',
};
