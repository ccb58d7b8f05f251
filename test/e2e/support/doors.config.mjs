/** The doors for clients of the AI SDK and of AG-UI, for two projects: the tokens of DOOR_TOKENS, by a comma. */
import { createHash } from "node:crypto";

const projects = ["one", "two"];
const tokens = (process.env.DOOR_TOKENS ?? "").split(",").map((token, index) => ({
  token: `sha256:${createHash("sha256").update(token).digest("hex")}`,
  project: projects[index],
}));

const code = (name, main, more = {}) => ({
  name,
  kind: "code",
  runtime: "node",
  code: `export const main = ${main};`,
  inputSchema: { type: "object" },
  ...more,
});

const request = {
  harness: "demo",
  permissions: { default: "allow", rules: [{ pattern: "wipe", permission: "deny" }] },
  customTools: [
    code("add", "({ a, b }) => ({ sum: a + b })"),
    code("book", "({ seat }) => ({ booked: seat })", { permission: "ask" }),
    code("wipe", "() => 'wiped'"),
  ],
};
// A client of AG-UI brings its own tools.
const chooseSeat = { name: "choose_seat", kind: "client", inputSchema: { type: "object" } };
const customTools = [...request.customTools, chooseSeat];

export default {
  extends: "defaults",
  probes: { keepAcrossRestarts: true },
  tokens,
  plugins: [
    { use: "@ambit/door-ai-sdk", config: { request: { ...request, customTools } } },
    { use: "@ambit/door-ag-ui", config: { request } },
  ],
};
