import type { RunRequest } from "@ambit/core/plugin";
import type { Profile } from "../profiles/profile.js";

/** The fields of a request that become an agent's instructions. */
export type InstructionField = "appendSystemPrompt" | "agentsMd";

/** Where this agent gets the platform's instructions: its system prompt, if that can be added to. */
function platformField({ instructions }: Profile): InstructionField {
  return instructions.appendSystemPrompt ? "appendSystemPrompt" : "agentsMd";
}

/** The request with the platform's instructions in front of the author's own. Pure. */
export function withPlatformInstructions(profile: Profile, request: RunRequest): RunRequest {
  const { platformInstructions = "" } = request;
  if (platformInstructions.trim() === "") return request;
  const field = platformField(profile);
  const own = request[field] ?? "";
  return {
    ...request,
    [field]: own === "" ? platformInstructions : `${platformInstructions}\n\n${own}`,
  };
}
