import { describe, expect, it } from "vitest";
import { routes } from "../../src/http/routes.js";
import { type PageRight, pageNeeds, pageRights, whyNotForPage } from "../../src/tenants/page-grant.js";

const own: Readonly<Record<string, string>> = { sessionId: "s", runId: "r", path: "a.txt" };
const ofSession = (...may: PageRight[]) => ({ scope: { kind: "session", sessionId: "s", may } }) as const;
const ofFile = { scope: { kind: "file", runKey: "r", path: "a.txt" } } as const;
const at =
  (parameters: Readonly<Record<string, string>> = own) =>
  (name: string) =>
    parameters[name] ?? "";

/** What a page may do: every other route of the server is closed to it. */
const open: Readonly<Record<string, PageRight>> = {
  "POST /run": "run",
  "POST /stream": "run",
  "POST /runs/{runId}/cancel": "run",
  "POST /runs/{runId}/messages": "run",
  "POST /runs/{runId}/interactions/{interactionId}": "answer",
  "GET /interactions": "read",
  "GET /runs": "read",
  "GET /runs/{runId}": "read",
  "GET /runs/{runId}/events": "read",
  "GET /runs/{runId}/files": "read",
  "GET /runs/{runId}/files/{path*}": "read",
  "GET /runs/{runId}/patch": "read",
  "GET /runs/{runId}/bundle": "read",
  "GET /runs/{runId}/archive": "read",
  "GET /sessions/{sessionId}/run": "read",
};

describe("a page's token", () => {
  const guarded = routes.filter(({ token }) => token !== "none");

  it.each(guarded.map((route) => [`${route.method} ${route.path}`, route] as const))(
    "%s is open to exactly the right that it needs",
    (name, route) => {
      const allowed = pageRights.filter(
        (right) => whyNotForPage(ofSession(right), route, at()) === undefined,
      );
      expect(allowed).toEqual([open[name]].filter((right) => right !== undefined));
      const others = pageRights.filter((right) => right !== open[name]);
      expect(whyNotForPage(ofSession(...others), route, at())).toMatch(
        `it may ${others.join(", ")} in the session "s", and nothing else.`,
      );
    },
  );

  it("of one file opens nothing but that file", () => {
    const door = { operation: { operationId: "post_door" }, isDoor: true };
    const openToFile = guarded.filter((route) => whyNotForPage(ofFile, route, at()) === undefined);
    expect(openToFile.map(({ path }) => path)).toEqual(["/runs/{runId}/files/{path*}"]);
    for (const route of [...openToFile, door])
      expect(whyNotForPage(ofFile, route, at({ ...own, path: "b.txt" }))).toMatch("for one file");
  });

  it("opens no route of another session, of all that name one", () => {
    const door = { operation: { operationId: "get_door" }, isDoor: true };
    const named = guarded.filter(({ path }) => path.includes("{sessionId}"));
    for (const route of [...named, door])
      expect(whyNotForPage(ofSession(...pageRights), route, at({ sessionId: "t" }))).toBeDefined();
  });

  it("opens doors, which call other routes as their caller", () => {
    const door = { operation: { operationId: "get_door" } };
    expect(whyNotForPage(ofSession("read"), { ...door, isDoor: true }, at())).toBeUndefined();
    expect(whyNotForPage(ofSession("read"), door, at())).toBeDefined();
  });

  it("knows only routes that there are", () => {
    const ids = routes.map(({ operation }) => operation.operationId);
    for (const operationId of pageNeeds.keys()) expect(ids).toContain(operationId);
  });
});
