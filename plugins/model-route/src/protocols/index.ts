import type { ModelProtocol } from "@ambit/core/plugin";
import { anthropic } from "./anthropic.js";
import { gemini } from "./gemini.js";
import { openai } from "./openai.js";
import type { Protocol } from "./protocol.js";

/** Every API that is carried. */
export const protocols: Readonly<Partial<Record<ModelProtocol, Protocol>>> = { anthropic, openai, gemini };
