import { describe, expect, test } from "vitest";
import "reflect-metadata";
import { composePrompt } from "../../src/parse/messages.js";
import { parseRunRequest } from "../../src/parse/parse.js";

const read = (body: unknown) => {
  const parsed = parseRunRequest(body);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.request;
};
const paths = (body: object) => {
  const parsed = parseRunRequest({ messages: [{ role: "user", content: "hi" }], ...body });
  return parsed.ok ? [] : parsed.issues.map(({ path }) => path);
};

test("the facts of a turn are in its prompt alone", () => {
  const request = read({
    turnContext: "Facts of this turn: it is Monday.",
    messages: [{ role: "user", content: "Say hello to Ada." }],
  });
  const prompt = JSON.stringify(composePrompt(request, false));
  expect(prompt).toContain("Facts of this turn");
  expect(prompt).toContain("Say hello to Ada.");
  const next = { ...request, turnContext: undefined, messages: [...request.messages, ...request.messages] };
  expect(JSON.stringify(composePrompt(next, false))).not.toContain("Facts of this turn");
});

const server = (policy: object) => ({
  mcpServers: [{ name: "a", connection: { type: "http", url: "https://a.example" }, policy }],
});

describe("what restricts or carries a credential is read whole, or refused", () => {
  test.each<[body: object, path: string]>([
    [server({ toolPermissions: { a: "yes" } }), "mcpServers[0].policy.toolPermissions"],
    [server({ newToolPermission: "yes" }), "mcpServers[0].policy.newToolPermission"],
    [
      { sandboxCredentials: [{ binding: { kind: "environment", name: "A-B" }, value: "x" }] },
      "sandboxCredentials[0].binding.name",
    ],
    [
      { modelConnection: { gatewayCredentials: { header: "a b", value: "x" } } },
      "modelConnection.gatewayCredentials.header",
    ],
  ])("%j", (body, path) => {
    expect(paths(body)).toContain(path);
  });

  test("a denial of a tool named __proto__ isn't lost", () => {
    const table = JSON.parse('{"__proto__": "deny"}') as object;
    expect(
      Object.keys(read(server({ toolPermissions: table })).mcpServers[0]?.policy?.toolPermissions ?? {}),
    ).toEqual(["__proto__"]);
  });

  test("two variables of one name are refused", () => {
    const one = { binding: { kind: "environment", name: "A" }, value: "x" };
    expect(paths({ sandboxCredentials: [one, one] })).toEqual(["sandboxCredentials[1].binding.name"]);
  });

  test.each<[body: object, path: string]>([
    [
      {
        mcpServers: [
          {
            name: "a",
            connection: {
              type: "http",
              url: "https://a.example",
              headers: { Authorization: "x" },
              credentials: [{ binding: { kind: "header", name: "authorization" }, value: "y" }],
            },
          },
        ],
      },
      "mcpServers[0].connection.credentials[0].binding.name",
    ],
    [
      {
        modelConnection: {
          endpoint: { headers: { "x-key": "1" } },
          gatewayCredentials: { header: "X-Key", value: "2" },
        },
      },
      "modelConnection.gatewayCredentials.header",
    ],
  ])("one header that is public and secret is refused: %j", (body, path) => {
    expect(paths(body)).toEqual([path]);
  });
});
