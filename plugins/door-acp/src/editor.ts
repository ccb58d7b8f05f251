import { readFile } from "node:fs/promises";
import type {
  AgentContext,
  ClientCapabilities,
  ElicitationSchema,
  RequestPermissionOutcome,
  RequestPermissionRequest,
  SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import type { InteractionAnswer } from "@ambit/client";
import { isJsonObject } from "@ambit/core/plugin";
import type { UpdateOptions } from "./updates.js";

/** Characters of a file whose unsaved text comes along with a prompt. */
const maxUnsaved = 1_048_576;

/** The editor on the other end, as far as a session uses it. */
export class Editor {
  constructor(
    readonly context: AgentContext,
    readonly capabilities: ClientCapabilities,
  ) {}

  /** How updates are made for it. */
  get shows(): Omit<UpdateOptions, "folder"> {
    const { _meta: meta, session } = this.capabilities;
    return {
      showsTerminals: meta?.terminal_output === true,
      showsNotices: session?.notices !== undefined && session.notices !== null,
    };
  }

  async update(sessionId: string, update: SessionUpdate): Promise<void> {
    await this.context.notify("session/update", { sessionId, update });
  }

  /** The question disappears when `signal` aborts. */
  async askPermission(
    request: RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<RequestPermissionOutcome> {
    const { outcome } = await this.context.request("session/request_permission", request, {
      cancellationSignal: signal,
    });
    return outcome;
  }

  /** What the agent asks its user for: a form, or a page to visit. An editor without such questions declines. */
  async askInput(
    sessionId: string,
    id: string,
    input: unknown,
    signal: AbortSignal,
  ): Promise<InteractionAnswer> {
    const { elicitation } = this.capabilities;
    const { message = "", form, url } = isJsonObject(input) ? input : {};
    const options = { cancellationSignal: signal };
    const text = typeof message === "string" ? message : "";
    if (isForm(form) && elicitation?.form) {
      const request = { sessionId, mode: "form", message: text, requestedSchema: form } as const;
      const response = await this.context.request("elicitation/create", request, options);
      if (response.action === "accept") return { output: "content" in response ? response.content : {} };
    }
    if (typeof url === "string" && elicitation?.url) {
      const request = { sessionId, mode: "url", message: text, url, elicitationId: id } as const;
      const response = await this.context.request("elicitation/create", request, options);
      if (response.action === "accept") return { output: {} };
    }
    return { output: "The user declined.", isError: true };
  }

  /** What it has of a file that isn't saved yet. */
  async readUnsaved(sessionId: string, path: string): Promise<string | undefined> {
    if (this.capabilities.fs?.readTextFile !== true) return undefined;
    try {
      const { content } = await this.context.request("fs/read_text_file", { sessionId, path });
      if (content.length > maxUnsaved) return undefined;
      return content === (await readFile(path, "utf8").catch(() => undefined)) ? undefined : content;
    } catch {
      // The agent reads the file itself.
      return undefined;
    }
  }
}

/** Its fields are the editor's to check. */
function isForm(form: unknown): form is ElicitationSchema {
  return isJsonObject(form);
}
