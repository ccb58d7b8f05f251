import { describeDialect } from "@ambit/testkit/vitest";
import { dialect } from "../src/index.js";

// The kit sends any JSON too: a dialect must not throw, change what it gets, or drop what it doesn't know.
describeDialect(dialect, [
  {
    name: "a prompt for an agent",
    request: { ask: "say hello", agent: "demo", sandboxPermission: { network: "off" } },
    translated: {
      harness: "demo",
      messages: [{ role: "user", content: "say hello" }],
      sandboxPermission: { network: "off" },
    },
  },
  { name: "a prompt that is no text", request: { ask: 1, agent: "demo" }, issues: ["ask"] },
  {
    name: "two prompts",
    request: { ask: "say hello", harness: "demo", messages: [] },
    issues: ["ask"],
  },
]);
