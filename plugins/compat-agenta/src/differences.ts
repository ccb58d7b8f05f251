import type { Difference } from "@ambit/core/plugin";

/** Behaviours that the Agenta runner's callers may rely on. What single keys do here is in the contract. */
export const differences: readonly Difference[] = [
  {
    about: "a `permissions.default` that isn't one of the four",
    there: "means `ask`",
    here: "400, with the path",
  },
  { about: "a tool of the kind `builtin`", there: "dropped", here: "refused: no plugin executes this kind" },
  {
    about: "a tool's name with a space, or with more than 128 characters",
    there: "accepted",
    here: "400: agents couldn't call it",
  },
  {
    about: "`harnessMode` for an agent without modes",
    there: "ignored",
    here: "refused, with the modes that the agent has",
  },
  {
    about: "`systemPrompt`, `appendSystemPrompt` for an agent that takes none",
    there: "ignored",
    here: "refused: use `agentsMd`",
  },
  {
    about: "an MCP server that calls its tool read-only (`readOnlyHint`)",
    there: "may allow the call under `allow_reads`",
    here: "allows nothing: only the request decides, by `policy` or `rules`",
    applies: ({ mcpServers, permissions }) =>
      permissions.default === "allow_reads" &&
      mcpServers.some(
        ({ policy = {} }) => policy.permission === undefined && policy.toolPermissions === undefined,
      ),
  },
  {
    about: "a skill's name with capitals, spaces or underscores",
    there: "accepted where it is a safe folder's name",
    here: "400: lower-case letters, digits and hyphens",
  },
  { about: "two skills of one name", there: "the later one replaces the earlier", here: "400" },
  {
    about: "a content block of this turn that the agent can't take",
    there: "passed on or dropped",
    here: "refused, with its path",
  },
  {
    about: "a failed agent, in the JSON form",
    there: "status 500",
    here: "502; the body is the same result with `failure` and `errorDetail`",
  },
  {
    about: "`traceId` of a request without `context.propagation.traceparent`",
    there: "one that the runner makes",
    here: "absent, unless the server exports traces",
    applies: ({ context }) => context?.propagation?.traceparent === undefined,
  },
  {
    about: "`usage.cost` of a model without a price",
    there: "as the agent reports it",
    here: "absent: unknown. 0 means free",
  },
  {
    about: "a call's arguments with a key `constructor`, or a tool's fixed `body` with `__proto__`",
    there: "the key is dropped",
    here: "the call fails, or the request is refused",
  },
  {
    about: "`GET /health`",
    there: "has `runner`, `protocol`, `engines` and `harnesses`",
    here: "has `status`, `probing` and `replicaId`; `GET /plugins` has the rest",
  },
  {
    about: '`credentialMode: "runtime_provided"`',
    there: "the agent's login on the runner's disk",
    here: "no login of the operator is used: the agent finds none",
    applies: ({ modelConnection }) =>
      modelConnection?.credentialMode === "runtime_provided" && modelConnection.subscription === undefined,
  },
  {
    about: "`modelConnection.subscription`",
    there: "the agent renews the login, and the platform gets the renewed one",
    here: "the agent gets it without the token that renews it: the platform's stays valid, and one that is valid for less than 10 minutes is refused",
    applies: ({ modelConnection }) => modelConnection?.subscription !== undefined,
  },
  {
    about: "`platformInstructions`",
    there: "describe the platform's own sandbox",
    here: "are delivered, but nothing in the sandbox is as they say: no folder `agent-files/`, no `.tools/`, other programs",
    applies: ({ platformInstructions }) => platformInstructions !== undefined,
  },
  {
    about: "a session in use",
    there: "`session_turn_in_use`",
    here: "the same in `errorDetail`; `failure.code` is `session_in_use`",
    applies: ({ sessionId }) => sessionId !== undefined,
  },
  {
    about: "a pattern of a permission with a prefix",
    there: "matches the first text of the arguments",
    here: "matches any text for `deny` and `ask`, and only the command's own argument for `allow`",
    applies: ({ permissions }) => permissions.rules?.some(({ pattern }) => pattern.includes("(")) ?? false,
  },
  {
    about: "an MCP server that can't be reached",
    there: "the run continues without its tools, with `mcp_server_failed`",
    here: "the same event, and the run fails: its tools would be missing",
    applies: ({ mcpServers }) => mcpServers.length > 0,
  },
  {
    about: "`controlCommandId`",
    there: "the platform admits the run first",
    here: "the runner calls no platform: it executes a command once, and repeats get the first run's result",
    applies: (request) => "controlCommandId" in request,
  },
];
