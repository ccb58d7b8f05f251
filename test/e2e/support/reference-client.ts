import type { AgentEvent, RunResult, StreamRecord } from "@ambit/core";
import { z } from "zod";
import { allOf, ndjson, recordsOf, type Server } from "./ambit.js";

export const questionSchema = z.object({ toolCallId: z.string(), toolName: z.string() });

interface Block {
  readonly type: string;
  readonly text?: string | undefined;
  readonly toolCallId?: string;
  readonly toolName?: string | undefined;
  readonly input?: unknown;
  readonly output?: unknown;
}

interface ReferenceMessage {
  readonly role: string;
  readonly content: string | readonly Block[];
}

/** One turn, from the view of the reference's SDK. */
export interface ReferenceTurn {
  readonly status: number;
  readonly records: readonly StreamRecord[];
  readonly events: readonly AgentEvent[];
  readonly result: RunResult | undefined;
}

/**
 * A caller that keeps a conversation like the reference's SDK: a turn's events become blocks of one assistant message,
 * and the user's answers are added to that message. Only `runContext` names the project.
 */
export class ReferenceClient {
  readonly messages: ReferenceMessage[] = [];

  constructor(
    readonly server: Server,
    /** The parts of its requests that stay the same. */
    readonly request: object,
    readonly session: { readonly id: string | null; readonly project: string },
  ) {}

  /** A turn with a message of the user. */
  say(text: string): Promise<ReferenceTurn> {
    this.messages.push({ role: "user", content: text });
    return this.run();
  }

  /** A turn with the user's answers to the last one's questions. @param output as the SDK sends it. */
  answer(output: unknown, turn: ReferenceTurn): Promise<ReferenceTurn> {
    const asked = turn.events.filter((event) => event.type === "interaction_request");
    for (const { payload } of asked) {
      const { toolCallId, toolName } = questionSchema.parse(payload);
      this.#tell([{ type: "tool_result", toolCallId, toolName, output }]);
    }
    return this.run();
  }

  async run(): Promise<ReferenceTurn> {
    const { id, project } = this.session;
    const response = await this.server.post(
      "/stream",
      {
        sandbox: "local",
        sessionId: id,
        context: null,
        telemetry: null,
        tools: [],
        mcpServers: [],
        runContext: { run: { kind: "test" }, project: { id: project } },
        ...this.request,
        messages: this.messages,
      },
      ndjson,
    );
    const { status } = response;
    const records = await allOf(recordsOf(response));
    const events = records.flatMap((record) => (record.kind === "event" ? [record.event] : []));
    this.#tell(events.flatMap(blocksOf));
    const last = records.at(-1);
    return { status, records, events, result: last?.kind === "result" ? last.result : undefined };
  }

  #tell(blocks: readonly Block[]): void {
    const last = this.messages.at(-1);
    if (last?.role !== "assistant" || typeof last.content === "string")
      this.messages.push({ role: "assistant", content: blocks });
    else this.messages.splice(-1, 1, { role: "assistant", content: [...last.content, ...blocks] });
  }
}

function blocksOf(event: AgentEvent): Block[] {
  switch (event.type) {
    case "message":
      return [{ type: "text", text: event.text }];
    case "message_delta":
      return [{ type: "text", text: event.delta }];
    case "tool_call":
      return [{ type: "tool_call", toolCallId: event.id, toolName: event.name, input: event.input ?? {} }];
    case "tool_result":
      return [{ type: "tool_result", toolCallId: event.id, output: event.output }];
    default:
      return [];
  }
}
