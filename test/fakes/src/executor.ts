import type { ActorGap, Boundary } from "@ambit/core";
import type { Capability, Domain, Issue, Site, ToolSpec } from "@ambit/core/contract";
import type { RunScope, ToolCall, ToolExecutor, ToolOutcome, ToolScope, ToolUse } from "@ambit/core/plugin";
import { proofsOf } from "./capabilities.js";

export interface ExecutorBehaviour {
  readonly kind?: string;
  readonly site?: Site;
  readonly claims?: readonly Capability[];
  readonly touches?: readonly Domain[];
  gaps?(boundary: Boundary, use: ToolUse): readonly ActorGap[];
  issues?(use: ToolUse): readonly Issue[];
  execute?(call: ToolCall, scope: ToolScope): Promise<ToolOutcome>;
  prepare?(tools: readonly ToolSpec[], scope: RunScope): void;
}

/** Answers every call with its arguments, unless it is told otherwise. */
export class FakeExecutor implements ToolExecutor {
  readonly name: string;
  readonly kind: string;
  readonly site: Site;
  readonly claims: readonly Capability[];
  readonly calls: ToolCall[] = [];

  constructor(readonly behaviour: ExecutorBehaviour = {}) {
    this.kind = behaviour.kind ?? "callback";
    this.name = this.kind;
    this.site = behaviour.site ?? "runner";
    this.claims = behaviour.claims ?? [];
  }

  touches(): readonly Domain[] {
    return this.behaviour.touches ?? ["network"];
  }

  gaps(boundary: Boundary, use: ToolUse): readonly ActorGap[] {
    return this.behaviour.gaps?.(boundary, use) ?? [];
  }

  issues(use: ToolUse): readonly Issue[] {
    return this.behaviour.issues?.(use) ?? [];
  }

  async probe() {
    return proofsOf(this.claims);
  }

  prepare(tools: readonly ToolSpec[], scope: RunScope): void {
    this.behaviour.prepare?.(tools, scope);
  }

  async execute(call: ToolCall, scope: ToolScope): Promise<ToolOutcome> {
    this.calls.push(call);
    if (this.behaviour.execute !== undefined) return this.behaviour.execute(call, scope);
    return { status: "completed", output: JSON.stringify(call.arguments) };
  }
}

/** Tools that the user's browser fulfils. */
export function clientExecutor(): FakeExecutor {
  return new FakeExecutor({
    kind: "client",
    site: "caller",
    touches: [],
    execute: async () => ({ status: "parked", interaction: "client_tool" }),
  });
}
