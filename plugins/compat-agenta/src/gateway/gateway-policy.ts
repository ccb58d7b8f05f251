import type { RunRequest } from "@ambit/core/contract";
import type { ToolPolicy } from "@ambit/core/plugin";
import { gatewayDecision, gatewayRoleOf } from "./decide.js";
import { type GatewayPolicy, gatewayPolicySchema } from "./policy-schema.js";
import { readableOutcome } from "./readable.js";

/** The field `gatewayPolicy`, which the request was validated with. */
function policyIn(request: RunRequest): GatewayPolicy | undefined {
  return gatewayPolicySchema.optional().parse(Reflect.get(request, "gatewayPolicy"));
}

/** The request's `gatewayPolicy`, behind the tools that find and run what it permits. */
export const gatewayPolicy: ToolPolicy = {
  name: "agenta-gateway",

  // Without a policy, a tool of the gateway could run everything.
  issues: (request) => {
    if (policyIn(request) !== undefined) return [];
    return request.customTools.flatMap((tool, index) => {
      if (gatewayRoleOf(tool) === undefined) return [];
      const message = `'${tool.callRef}' needs a gatewayPolicy: without one, every tool behind it is denied`;
      return [{ path: `customTools[${index}].callRef`, message }];
    });
  },

  forRun: (request) => {
    const policy = policyIn(request) ?? { integrations: {} };
    return {
      decide: (tool, input) => {
        const role = gatewayRoleOf(tool);
        return role === undefined ? undefined : gatewayDecision(role, policy, input);
      },
      readable: (tool, outcome) => {
        const role = gatewayRoleOf(tool);
        return role === undefined ? outcome : readableOutcome(role, policy, outcome);
      },
    };
  },
};
