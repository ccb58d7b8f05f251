// needs: jail

import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import {
  conformanceProgram,
  contradictionsOf,
  type Exceptions,
  runConformance,
} from "@ambit/fakes/mcp-conformance";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Server, startServer } from "../support/ambit.js";
import { relayFixtures } from "./support/fixture-relay.js";

const require = createRequire(import.meta.url);
const program = conformanceProgram();
const token = randomUUID();

let server: Server;
beforeAll(async () => {
  const config = ["--config", require.resolve("../support/mcp-door.config.mjs")];
  server = await startServer({ AMBIT_TOKEN: token }, config);
  return () => void server.process.kill("SIGKILL");
});

const common: Exceptions = [
  [/^prompts-/, "there are no prompts"],
  [/^resources-(?!list:)/, "it expects its own resources"],
  [/^completion-complete:/, "there are no prompts, and no arguments of resources that it could complete"],
  [/^tools-call-(image|audio|embedded-resource|mixed-content):/, "what an agent says is a text"],
  [/^json-schema-2020-12:/, "it expects its own tool's schema"],
];

/** Checks that don't pass, by their scenarios, with the reason. Any other must pass, and none of these. */
const exceptions: Readonly<Record<string, Exceptions>> = {
  "2025-11-25": [
    ...common,
    [/^(logging-set-level|tools-call-with-logging):/, "no logs are sent: 2026-07-28 withdraws them"],
    [/^tools-call-sampling:/, "an agent has a model of its own"],
    [/^(tools-call-elicitation|elicitation-.+):/, "it expects its own tool's form"],
    [/^server-sse-polling:/, "a stream isn't resumed: a task, or continue_run, finds the run by its id"],
  ],
  "2026-07-28": [
    ...common,
    [/^caching:sep-2549-prompts/, "there are no prompts"],
    [/^input-required-result-non-tool-request:/, "there are no prompts"],
    [/^input-required-result-(basic-sampling|capability-check):/, "an agent has a model of its own"],
    [
      /^input-required-result-(basic-list-roots|multiple-input-requests):/,
      "runs don't see the client's folders",
    ],
    [
      /^input-required-result-(basic-elicitation|multi-round|ignore-extra-params):/,
      "it expects its own tool's form",
    ],
    [/^http-custom-header-server-validation:/, "it expects its own tool's schema"],
    [
      /^server-stateless:.+-(rejects-undeclared-capability|capability-http-400)$/,
      "no tool needs a capability",
    ],
    [/^server-stateless:.+-no-independent-requests-on-stream$/, "it expects its own tool's stream"],
    [/^server-stateless:.+-no-log-without-loglevel$/, "no logs are sent: 2026-07-28 withdraws them"],
    [/^tasks-lifecycle:sep-2663-tasks-get-status-failed$/, "a run that fails has a result, with its reason"],
    [/^tasks-request-headers:tasks-headers-tolerate-mcp-method/, "it expects its own tool's greeting"],
    [/^tasks-(required-task-error|mrtr-composition):/, "no tool requires tasks: a call can wait for its run"],
  ],
};

describe.for(Object.entries(exceptions))("MCP's own conformance suite, %s", ([version, excused]) => {
  it("passes but for what isn't offered", { timeout: 300_000 }, async ({ skip }) => {
    if (program === undefined) return skip("host: @modelcontextprotocol/conformance isn't installed");
    const url = await relayFixtures(server.url, token, onTestFinished);
    const checks = await runConformance(program, ["server", "--url", url, "--requirements", version]);
    expect(contradictionsOf(checks, excused)).toEqual([]);
    expect(checks.size).toBeGreaterThan(30);
  });
});
