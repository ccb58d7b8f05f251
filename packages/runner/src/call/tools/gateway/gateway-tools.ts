import type { JsonObject, Permission, RunRequest, ToolSpec } from "@ambit/core/contract";
import type { ToolOutcome } from "@ambit/core/plugin";
import { permittedOutcome } from "./found-tools.js";
import { type GatewayCall, gatewayCall, gatewayRoleOf } from "./policy.js";

/** The request's `gatewayPolicy`, behind the tools that find and run what it permits. */
export class GatewayTools {
  constructor(private readonly request: Pick<RunRequest, "gatewayPolicy">) {}

  /** The permission of a call; undefined for any other tool, or while its arguments can't be read. */
  permission(tool: ToolSpec | undefined, input: unknown): Permission | undefined {
    const call = this.#call(tool, input);
    if (call === undefined || call.kind === "malformed") return undefined;
    return call.kind === "denied" ? "deny" : call.permission;
  }

  /** Why a call can't be made, for the model. */
  problem(tool: ToolSpec, input: unknown): string | undefined {
    const call = this.#call(tool, input);
    return call?.kind === "malformed" ? `Tool '${tool.name}' can't be called: ${call.problem}` : undefined;
  }

  /** Why a call is denied, where the policy denies it. */
  denial(tool: ToolSpec | undefined, input: unknown): string | undefined {
    const call = this.#call(tool, input);
    return call?.kind === "denied" ? call.why : undefined;
  }

  /** What the user reads of a call besides its arguments. */
  details(tool: ToolSpec | undefined, input: unknown): JsonObject {
    const call = this.#call(tool, input);
    return call?.kind === "known" ? call.details : {};
  }

  /** What the platform gets besides the model's arguments. */
  context(tool: ToolSpec, input: unknown): JsonObject | undefined {
    const call = this.#call(tool, input);
    return call?.kind === "known" ? call.context : undefined;
  }

  /** What the model may read of an outcome. */
  permitted(tool: ToolSpec, outcome: ToolOutcome): ToolOutcome {
    const role = gatewayRoleOf(tool);
    return role === undefined ? outcome : permittedOutcome(role, this.request.gatewayPolicy, outcome);
  }

  #call(tool: ToolSpec | undefined, input: unknown): GatewayCall | undefined {
    const role = gatewayRoleOf(tool);
    return role === undefined ? undefined : gatewayCall(role, this.request.gatewayPolicy, input);
  }
}
