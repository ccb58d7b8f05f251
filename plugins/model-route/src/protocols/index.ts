import type { ModelProtocol } from "@ambit/core/plugin";
import { anthropic } from "./anthropic.js";
import { bedrock } from "./bedrock.js";
import { gemini } from "./gemini.js";
import { openai } from "./openai.js";
import type { Protocol } from "./protocol.js";
import { vertex } from "./vertex.js";

/** Every supported API. */
export const protocols: Readonly<Record<ModelProtocol, Protocol>> = {
  anthropic,
  openai,
  gemini,
  bedrock,
  vertex,
};
