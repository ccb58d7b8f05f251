import type { ActorGap, Boundary, Issue, RunRequest, ToolUse } from "@ambit/core/plugin";
import {
  destinationGap,
  entryFor,
  operatorPolicy,
  portOf,
  whyForbidden,
  whyUrlForbidden,
} from "@ambit/egress";
import {
  bindingProblem,
  directPathProblem,
  pathProblem,
  readPath,
  runContextOf,
  unsafeKeyIn,
} from "./call.js";
import type { CallbackConfig } from "./config.js";
import { boundaryPolicy } from "./outbound.js";

/** What a header may carry (RFC 9110 field-value): anything else would break the request, or split it. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Why a callback tool can't be called, by path within the tool. Pure. */
export function issuesOfTool(use: ToolUse): readonly Issue[] {
  return [...ofTarget(use), ...ofBindings(use)];
}

function ofTarget({ tool }: ToolUse): Issue[] {
  if (tool.callRef === undefined && tool.call === undefined) {
    return [
      {
        path: "callRef",
        message: "is required: the name the platform knows the tool by (or `call`, for a direct call)",
      },
    ];
  }
  if (tool.callRef !== undefined && tool.call !== undefined) {
    return [{ path: "call", message: "excludes callRef: keep one of the two" }];
  }
  return [];
}

/** What keeps every callback tool of a request from being called. Pure. */
export function issuesOfRequest(request: RunRequest, config: CallbackConfig): readonly Issue[] {
  const issue = (message: string): Issue[] => [{ path: "", message }];
  const { toolCallback } = request;
  if (toolCallback === undefined) {
    return issue("needs toolCallback.endpoint in the request: there is nowhere to post its calls");
  }
  const url = new URL(toolCallback.endpoint);
  if (!headerValue.test(toolCallback.authorization ?? "")) {
    return issue(
      "toolCallback.authorization can't be sent as a header: remove line breaks and characters beyond Latin-1",
    );
  }
  const runKind = readPath(runContextOf(request), "run.kind");
  if (typeof runKind === "string" && !headerValue.test(runKind)) {
    return issue(
      "runContext.run.kind can't be sent as a header: remove line breaks and characters beyond Latin-1",
    );
  }
  const forbidden = whyUrlForbidden([operatorPolicy(config)], url);
  if (forbidden === undefined) return [];
  return issue(
    `toolCallback.endpoint resolves to an address that this runner doesn't connect to (${forbidden}): use another endpoint, or ask the deployer to add its range to executor-callback's allowedRanges`,
  );
}

function ofBindings({ tool, request }: ToolUse): Issue[] {
  const issues: Issue[] = [];
  const add = (path: string, problem: string | undefined) => {
    if (problem !== undefined) issues.push({ path, message: problem });
  };
  for (const [path, value] of Object.entries(tool.contextBindings ?? {})) {
    add(`contextBindings[${JSON.stringify(path)}]`, bindingProblem(path, value));
  }
  const { call } = tool;
  if (call === undefined) return issues;
  if (request.toolCallback !== undefined) {
    add("call.path", directPathProblem(call.path, new URL(request.toolCallback.endpoint)));
  }
  if (call.args_into !== undefined) add("call.args_into", pathProblem(call.args_into));
  const unsafe = unsafeKeyIn(call.body);
  if (unsafe !== undefined) add("call.body", `must not have a key '${unsafe}'`);
  for (const [path, value] of Object.entries(call.context ?? {})) {
    add(`call.context[${JSON.stringify(path)}]`, bindingProblem(path, value));
  }
  return issues;
}

const connects = "its calls are posted from the runner to";
const otherwise = 'remove the tool, or accept this with enforcement "best_effort"';

/**
 * A callback is posted from the runner, so its destination is egress of the run: it must be on the list that the
 * sandbox is held to. A direct call goes to the same origin. Pure.
 */
export function gapsOfCallback(
  boundary: Boundary,
  request: RunRequest,
  config: CallbackConfig,
): readonly ActorGap[] {
  const endpoint = request.toolCallback?.endpoint;
  if (endpoint === undefined || boundary.network.mode === "on") return [];
  const url = new URL(endpoint);
  const unlisted = destinationGap(boundary.network, url, { connects, otherwise });
  if (unlisted !== undefined) return [unlisted];
  if (!isLoopbackName(url)) return [];
  const policy = boundaryPolicy(boundary, config);
  const port = portOf(url);
  // Hosts resolve it to both, and one closed address refuses the name.
  if (["127.0.0.1", "::1"].every((each) => whyForbidden([policy], each, port) === undefined)) return [];
  const listed = `"127.0.0.1:${port}" and "[::1]:${port}"`;
  return [
    {
      capability: "network.allow-host",
      reason: `${connects} ${entryFor(url)}, a name for the loopback addresses, and a listed name may resolve to them only where both are listed`,
      fix: `list ${listed} too, ask the deployer to add 127.0.0.0/8 and ::1 to executor-callback's allowedRanges, or ${otherwise}`,
    },
  ];
}

/** Names that RFC 6761 binds to the loopback address: no lookup is needed to know where they lead. */
function isLoopbackName({ hostname }: URL): boolean {
  return /(^|\.)localhost\.?$/.test(hostname);
}
