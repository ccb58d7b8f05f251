import type { Permission, RunRequest, Warning } from "@ambit/core/contract";
import type { Harness } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import type { PermissionCeiling } from "../../operator.js";
import { type PlannedRun, tokens } from "../../tokens.js";
import { RunTools } from "../tools/run-tools.js";
import type { CallSubject } from "../values/call.js";
import { type KnownTools, toolsNamed, unusedRules } from "./known-tools.js";
import { matcherOf, permissionOf, strictest } from "./permission.js";

/** The permission of each call of a run: the request's rules below the operator's ceiling. */
@injectable()
export class CallPermissions {
  readonly #request: RunRequest;
  readonly #harness: Harness;
  #known: KnownTools;

  constructor(
    @inject(tokens.run) { request, plan }: PlannedRun,
    @inject(tokens.permissionCeiling) private readonly ceiling: PermissionCeiling,
    @inject(RunTools) private readonly tools: RunTools,
  ) {
    this.#request = request;
    this.#harness = plan.harness.actor;
    this.#known = toolsNamed(request, this.#harness);
  }

  /** The names of all tools that are published to the agent. @returns a warning for each rule that matches none. */
  learn(published: Iterable<string>): readonly Warning[] {
    const { own, published: before } = this.#known;
    this.#known = { own, published: new Set([...before, ...published]) };
    return unusedRules(this.#request, this.#harness.id, this.#known);
  }

  /** The permission in force for a call. One that the user fulfils isn't asked about: answering it is the consent. */
  effective(call: CallSubject, matches = matcherOf(call, this.#known)): Permission {
    const { ceiling } = this;
    const { tool, input } = call;
    const rules = { permissions: this.#request.permissions, ceiling, known: this.#known };
    const door = permissionOf(call, rules, matches);
    const permission = door === "ask" && this.tools.isByCaller(tool) ? "allow" : door;
    return strictest(permission, this.tools.policies.permission(tool, input) ?? "allow");
  }

  /** What the model reads of a call that is denied. */
  denial({ name, tool, input }: CallSubject): string {
    return this.tools.policies.denial(tool, input) ?? `Tool '${name}' is denied by policy.`;
  }

  /** Whether the user may have to be asked about a call that the agent reports, as far as its tool is known. */
  mayAsk(name: string, input: unknown): boolean {
    const { servers } = this.tools;
    const tool = this.tools.byName.get(name);
    const call = { origin: "agent", name, input, tool } as const;
    if (tool !== undefined) return this.tools.isByCaller(tool) || this.effective(call) === "ask";
    if (servers.size === 0 && !this.#harness.supportsPermissionRequests) return false;
    if (this.effective(call) === "ask") return true;
    const [first] = servers.values();
    const matches = matcherOf({ ...call, server: first }, this.#known);
    return [...servers.values()].some((server) => this.effective({ ...call, server }, matches) === "ask");
  }
}
