import type { AgentEvent } from "./events.js";

/** What each event says: the table in the contract's README is made of it. */
export const eventDescriptions: Readonly<Record<AgentEvent["type"], string>> = {
  turn: "The turn begins in a session. `POST /cancel` takes its id.",
  message: "A text of the agent, whole.",
  thought: "A thought of the agent, whole.",
  message_start: "A text begins that comes in pieces.",
  message_delta: "A piece of the text with this id.",
  message_end: "The text with this id is complete.",
  thought_start: "A thought begins that comes in pieces.",
  thought_delta: "A piece of the thought with this id.",
  thought_end: "The thought with this id is complete.",
  tool_call: "The agent calls a tool.",
  tool_output: "A piece of what a command prints while it runs; only in a stream.",
  tool_result: "The call with this id has ended. `changes`: the files that it changed.",
  interaction_request: "The run asks its user. An answer takes this id.",
  interaction_response: "The question with this id was answered.",
  interaction_expired:
    "A question is over without an answer. While the run goes on, the agent has withdrawn it; after the run has paused, it waited too long.",
  boundary_decision:
    "The boundary allowed or refused a connection, `count` times in a row. With `failure`, an allowed one failed.",
  commands: "The agent's slash commands, whenever the list changes: a prompt may begin with `/name`.",
  mode: "The agent changed its mode.",
  configuration: "The agent changed its configuration: the values that hold from now on.",
  data: "Anything else, by its name: `run` (what was chosen), `plan` (the agent's plan, whole), `setup` (a command of `environment.setup` that started, printed or ended), `notice`, `truncated`, `preview` (a port of the request's `ports` has a URL: `port`, `name`, `url`, `expiresAt`; everyone who has the URL can use it), `pull_request` (`url`, `number`, `branch`, `opened`), and `acp.…` for updates that Ambit doesn't know.",
  file: "A file of the agent, or one of the run's `outputs`: then with its path, bytes and digest.",
  usage: "The usage of this turn.",
  mcp_server_failed: "An MCP server of the request could not be reached or used.",
  error: "What went wrong. The result says whether the run failed.",
  done: "The turn is over. The result follows.",
};
