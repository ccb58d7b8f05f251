import { expect, test } from "vitest";
import type { ApiRequest } from "../src/forge/api.js";
import { forgeAt, openPullRequest } from "../src/forge/pull-request.js";

const pull = { html_url: "https://github.com/acme/app/pull/7", number: 7 };

/** GitHub as it answers: by the end of the path. */
function opening(
  answers: Readonly<Record<string, { status: number; content: unknown }>>,
  labels: string[],
  value = "robot:a-token-of-the-host",
) {
  const asked: string[] = [];
  const send = async ({ method, url }: ApiRequest) => {
    asked.push(`${method} ${url.pathname}`);
    const [, { status, content } = { status: 404, content: {} }] =
      Object.entries(answers).find(([end]) => url.pathname.endsWith(end)) ?? [];
    return { status, body: JSON.stringify(content) };
  };
  const output = {
    push: "branch" as const,
    branch: "fix",
    message: "Fix it",
    author: { name: "A", email: "a@example.com" },
    credential: { value, as: "basic" as const },
    pullRequest: { title: "Fix", body: "", base: "main", draft: false, labels },
  };
  const pushed = { url: "https://github.com/acme/app.git", branch: "fix" };
  return { asked, opened: openPullRequest(output, pushed, send, new AbortController().signal) };
}

const created = { "/pulls": { status: 201, content: pull } };

test("a pull request is opened, and gets its labels", async () => {
  const { asked, opened } = opening({ ...created, "/labels": { status: 200, content: [] } }, ["robot"]);
  expect(await opened).toEqual({ url: pull.html_url, number: 7, opened: true });
  expect(asked).toEqual(["POST /repos/acme/app/pulls", "POST /repos/acme/app/issues/7/labels"]);
});

test("one whose labels are refused is named as open", async () => {
  const refused = { "/labels": { status: 403, content: { message: "no rights" } } };
  const { opened } = opening({ ...created, ...refused }, ["robot"]);
  await expect(opened).rejects.toMatchObject({
    code: "outputs_failed",
    reason: "pull_request_failed",
    message: expect.stringMatching(/pull\/7 is open.*HTTP 403.*no rights.*labels/),
  });
});

test("a refusal that echoes the token doesn't show a part of it where it is cut", async () => {
  const echo = { message: `${"x".repeat(380)} a-token-of-the-host` };
  const { opened } = opening({ "/pulls": { status: 400, content: echo } }, []);
  const failure = await opened.catch((error: unknown) => error);
  expect(failure).toMatchObject({ message: expect.stringContaining("xxx ") });
  expect(String(failure)).not.toContain("a-to");
});

test("only hosts that are listed are known", () => {
  expect(forgeAt("https://gitlab.com/acme/app", undefined)).toBe("gitlab");
  expect(forgeAt("https://constructor/acme/app", undefined)).toBeUndefined();
});
