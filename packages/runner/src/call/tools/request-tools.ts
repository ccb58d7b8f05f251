import { PluginBrokeContract } from "@ambit/core";
import type { InteractionPayload, JsonObject, ToolSpec } from "@ambit/core/contract";
import type { PublishedCall, ToolOutcome } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import type { CallSubject } from "../values/call.js";
import { ToolArguments } from "./arguments/tool-arguments.js";
import { type CutOff, ToolExecution } from "./execute.js";
import { GatewayTools } from "./gateway/gateway-tools.js";
import { RunTools } from "./run-tools.js";

/** The request's own tools: what is wrong with a call, what its user reads of it, its execution. */
@injectable()
export class RequestTools {
  constructor(
    @inject(RunTools) private readonly known: RunTools,
    @inject(GatewayTools) private readonly gateway: GatewayTools,
    @inject(ToolArguments) private readonly toolArguments: ToolArguments,
    @inject(ToolExecution) private readonly execution: ToolExecution,
  ) {}

  /** Why a call can't be made, for the model. */
  async problem(tool: ToolSpec, given: JsonObject, signal: AbortSignal): Promise<string | undefined> {
    return this.gateway.problem(tool, given) ?? (await this.toolArguments.problem(tool, given, signal));
  }

  /** What its user reads of a call besides name and arguments. */
  details({ tool, input, files }: CallSubject): InteractionPayload {
    return { ...this.gateway.details(tool, input), ...files, ...(tool?.render && { render: tool.render }) };
  }

  /** @throws PluginBrokeContract */
  async execute(
    id: string,
    tool: ToolSpec,
    made: PublishedCall,
  ): Promise<{ readonly result: ToolOutcome; readonly cut?: CutOff | undefined }> {
    const executor = this.known.executors.get(tool.kind);
    if (executor === undefined)
      throw new PluginBrokeContract(`The plan has no executor for kind '${tool.kind}'.`);
    const context = this.gateway.context(tool, made.arguments);
    const call = { id, tool, arguments: made.arguments, context };
    const { result, cut } = await this.execution.execute(executor, call, made.signal);
    return { result: this.gateway.permitted(tool, result), cut };
  }
}
