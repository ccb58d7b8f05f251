export {
  type Answer,
  call,
  DEFAULT_USAGE,
  type JsonObject,
  type MessageAnswer,
  type ScriptedCall,
  say,
  shell,
  type Usage,
} from "./answer.js";
export type { RecordedRequest } from "./recording.js";
export type { Operation } from "./routes.js";
export { followMarkers, PLAIN_TEXT, type Script } from "./script.js";
export { type ModelServer, type ModelServerOptions, startModelServer } from "./server.js";
export { type ApiName, type ModelTurn, type OfferedTool, qualifiedName, type ToolResult } from "./turn.js";
