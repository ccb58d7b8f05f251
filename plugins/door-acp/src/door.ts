import type { Door, StdioCall } from "@ambit/core/plugin";
import type { AcpConfig } from "./config.js";
import { optionsOf } from "./options.js";

/** Serves an editor that speaks ACP: each session works in the editor's own folder. */
export class AcpDoor implements Door {
  readonly name = "acp";

  constructor(readonly config: AcpConfig) {}

  async stdio(call: StdioCall): Promise<void> {
    const options = optionsOf(call.arguments, this.config.request);
    // The protocol's schemas are large, and no other command needs them.
    const { serveEditor } = await import("./served-editor.js");
    await serveEditor(call, options);
  }
}
