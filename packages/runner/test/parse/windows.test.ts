import { type KnownShape, knownShapeOf, runRequestSchema } from "@ambit/core/contract";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { parseRunRequest, validate } from "../../src/parse/parse.js";

const count = 10_000;
const listOf = <Entry>(entry: (index: number) => Entry) =>
  Array.from({ length: count }, (_, at) => entry(at));
const mapOf = <Entry>(entry: (index: number) => Entry) =>
  Object.fromEntries(listOf((index) => [`k${index}`, entry(index)]));

const server = (more: object) => ({ mcpServers: [{ name: "a", ...more }] });
const tool = (more: object) => ({ customTools: [{ name: "a", ...more }] });
const web = { type: "http", url: "https://a.example" };

/** A request with this entry in a list, or 10,000 of them. */
const places: [path: string, request: (entries: unknown[], map: object) => object][] = [
  [
    "mcpServers[0].connection.args[5000]",
    (args) => server({ connection: { type: "stdio", command: "x", args } }),
  ],
  [
    "mcpServers[0].connection.credentials[5000]",
    (credentials) => server({ connection: { ...web, credentials } }),
  ],
  [
    "mcpServers[0].policy.tools.names[5000]",
    (names) => server({ connection: web, policy: { tools: { mode: "include", names } } }),
  ],
  ["customTools[0].ephemeralArgs[5000]", (ephemeralArgs) => tool({ ephemeralArgs })],
  ["customTools[0].contextBindings.k5000", (_, contextBindings) => tool({ contextBindings })],
  ["modelConnection.credentials[5000]", (credentials) => ({ modelConnection: { credentials } })],
  ["messages[0].content[5000]", (content) => ({ messages: [{ role: "user", content }] })],
  ["skills[0].files[5000]", (files) => ({ skills: [{ name: "a", description: "b", body: "c", files }] })],
  [
    "workspace.sources[1].files[5000]",
    (files) => ({
      workspace: {
        sources: [
          { type: "files", files: [{ path: "a", content: "" }] },
          { type: "files", files },
        ],
      },
    }),
  ],
];

const issuesOf = (request: object) => {
  const parsed = parseRunRequest(request);
  return parsed.ok ? [] : parsed.issues;
};

describe("a long list of a request", () => {
  test.each(places)("has every issue with its place: %s", (path, request) => {
    // What is wrong with all entries is said of a hundred.
    const all = issuesOf(
      request(
        listOf(() => 5),
        mapOf(() => 5),
      ),
    );
    expect([all.length, all.at(-1)?.message]).toEqual([101, "there are more: fix these first"]);
    expect(all[0]?.path).toContain(path.replace("5000", "0"));
    // The same schema takes a short list of such entries whole.
    const short = issuesOf(request([5, 5], { k0: 5, k1: 5 }));
    expect(all.slice(0, 2)).toEqual(short.slice(0, 2));
  });

  test("has issues far from its beginning", () => {
    const args = listOf((index) => (index % 4_999 === 1 ? 5 : "x"));
    expect(issuesOf(server({ connection: { type: "stdio", command: "x", args } }))).toEqual(
      [1, 5_000, 9_999].map((at) => ({
        path: `mcpServers[0].connection.args[${at}]`,
        message: "must be a string, not a number",
      })),
    );
    const content = listOf((index) => (index === 5_000 ? 5 : { type: "text", text: "x" }));
    expect(issuesOf({ messages: [{ role: "user", content }] })).toEqual([
      { path: "messages[0].content[5000]", message: "must be an object, not a number" },
    ]);
  });

  test("isn't within another one: entries of both would have to be looked at", () => {
    const isLong = (level: KnownShape) => level.kind === "map" || (level.kind === "list" && level.max > 100);
    const nested = (level: KnownShape | undefined, path: string, above: string | undefined): string[] => {
      if (level === undefined) return [];
      const inner = isLong(level) ? path : above;
      const here = isLong(level) && above !== undefined ? [`${path} in ${above}`] : [];
      if (level.kind === "list") return [...here, ...nested(level.element, `${path}[]`, inner)];
      if (level.kind === "map") return [...here, ...nested(level.value, `${path}{}`, inner)];
      const below = [...level.keys].flatMap(([key, one]) => nested(one, `${path}.${key}`, inner));
      return [...here, ...below];
    };
    // The lists of these are validated entry by entry.
    const single = /^\.(messages|customTools|mcpServers|skills|harnessFiles)$/;
    const found = nested(knownShapeOf(runRequestSchema), "", undefined);
    expect(found.filter((one) => !single.test(one.split(" in ")[1] ?? ""))).toEqual([]);
  });
});

test.each<[string, (entry: z.ZodType) => z.ZodType, unknown]>([
  ["a list", (entry) => z.array(entry), listOf(() => "x")],
  ["a map", (entry) => z.record(z.string(), entry), mapOf(() => "x")],
])("no more of %s is looked at once there are enough issues", (_what, inside, value) => {
  let looked = 0;
  const entry = z.string().refine(() => {
    looked += 1;
    return false;
  }, "is wrong");
  const schema = z.strictObject({ inner: inside(entry) });
  const validated = validate(schema, { inner: value }, knownShapeOf(schema));
  expect(validated.success ? 0 : validated.issues.length).toBeGreaterThan(100);
  expect(looked).toBeLessThan(500);
  // The control: zod looks at all.
  schema.safeParse({ inner: value });
  expect(looked).toBeGreaterThan(count);
});
