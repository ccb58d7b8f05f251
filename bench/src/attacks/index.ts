import { agentTexts, agentValues } from "./agents.js";
import type { LoadAttack } from "./attack.js";
import { largeBodies } from "./bodies.js";
import { halfOpenConnections, openDocument, pipelinedRequests, singleBytes } from "./connections.js";
import { chosenValues, encodedAnswers, modelAnswers, webhookAnswers } from "./outbound.js";
import { readersThatDontRead } from "./readers.js";
import { callbackAnswers, mcpLists, mcpResults, mcpTooLongLists } from "./tools.js";

/** By the name that a report and `--only` use. */
export const attacks: Readonly<Record<string, LoadAttack>> = {
  "half-open connections": halfOpenConnections,
  "pipelined requests": pipelinedRequests,
  "bodies in chunks of a single byte": singleBytes,
  "openapi.json without a token": openDocument,
  "request bodies of 16 MiB": largeBodies,
  "agents' messages of 45,000 values": agentValues,
  "agents' messages of 7.5 MB of text": agentTexts,
  "callbacks' answers": callbackAnswers,
  "MCP results": mcpResults,
  "MCP lists of 24,000 tools": mcpLists,
  "MCP lists of 200,000 tools": mcpTooLongLists,
  "model answers": modelAnswers,
  "zstd answers of a credential's host": encodedAnswers,
  "chosen credential values": chosenValues,
  "webhooks' answers": webhookAnswers,
  "320 readers that don't read": readersThatDontRead,
};
