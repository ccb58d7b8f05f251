import type { HarnessCapabilities } from "@ambit/core/plugin";
import type { Profile } from "../../profiles/profile.js";
import type { PromptAbilities } from "../turn/prompt-content.js";
import type { AgentAbilities } from "../wire/answers.js";

export function promptAbilities(abilities: AgentAbilities): PromptAbilities {
  const prompt = abilities.agentCapabilities?.promptCapabilities;
  return {
    image: prompt?.image ?? false,
    audio: prompt?.audio ?? false,
    embeddedContext: prompt?.embeddedContext ?? false,
  };
}

/** How an earlier conversation is resumed. `resume` is preferred, since it replays nothing. */
export function restoreMethod(abilities: AgentAbilities): "session/resume" | "session/load" | undefined {
  const agent = abilities.agentCapabilities;
  if (isAnnounced(agent?.sessionCapabilities?.resume)) return "session/resume";
  return agent?.loadSession === true ? "session/load" : undefined;
}

/** Whether it wants `session/close` at the end of a session. */
export function closesSessions({ agentCapabilities }: AgentAbilities): boolean {
  return isAnnounced(agentCapabilities?.sessionCapabilities?.close);
}

/** A capability of ACP is an object, usually an empty one. */
function isAnnounced(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}

/** Whether it takes a message of the user in mid-turn. */
export function takesSteering({ _meta }: AgentAbilities): boolean {
  return _meta?.steering?.supported ?? false;
}

/** What `initialize` reported, completed by the profile. */
export function harnessCapabilities(abilities: AgentAbilities, profile: Profile): HarnessCapabilities {
  const prompt = promptAbilities(abilities);
  return {
    textMessages: true,
    images: prompt.image,
    fileAttachments: prompt.embeddedContext,
    mcpTools:
      profile.toolDelivery === "prepared" || (abilities.agentCapabilities?.mcpCapabilities?.http ?? false),
    toolCalls: true,
    reasoning: profile.reports.reasoning,
    planMode: profile.reports.plans,
    permissions: true,
    usage: profile.reports.usage,
    streamingDeltas: true,
    sessionLifecycle: restoreMethod(abilities) !== undefined,
  };
}
