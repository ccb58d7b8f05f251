import type { Finding } from "@ambit/core";
import type { Capability, HarnessCapabilities } from "@ambit/core/contract";

/** Findings that prove each capability. */
export function proofsOf(capabilities: readonly Capability[]): Finding[] {
  return capabilities.map((capability) => ({ capability, proven: true, how: `seen: ${capability}` }));
}

export const allCapabilities: HarnessCapabilities = {
  textMessages: true,
  images: false,
  fileAttachments: false,
  mcpTools: true,
  toolCalls: true,
  reasoning: true,
  planMode: false,
  permissions: true,
  usage: true,
  streamingDeltas: true,
  sessionLifecycle: true,
};
