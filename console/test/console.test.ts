import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { AmbitClient } from "@ambit/client";
import { startModelServer } from "@ambit/model-server";
import axe from "axe-core";
import type { Page } from "playwright-core";
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  it,
  onTestFinished,
  type TestContext,
  vi,
} from "vitest";
import { noBrowser, type SeenPage, startBrowser, type TestBrowser } from "./support/browser.js";
import { pageFolder } from "./support/built-page.js";
import {
  boundary,
  type ConsoleServer,
  demo,
  operatorToken,
  startConsoleServer,
} from "./support/console-server.js";

// Each test waits for a browser and for runs, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 });

const tenantToken = "ambit_of-a-tenant-that-is-long-enough";
let server: ConsoleServer;
let browser: TestBrowser | undefined;
const opened: SeenPage[] = [];

beforeAll(async () => {
  const token = `sha256:${createHash("sha256").update(tenantToken).digest("hex")}`;
  server = await startConsoleServer({
    server: { terminals: { enabled: true } },
    tokens: [{ token, project: "acme", limits: { concurrentRuns: 5 } }],
  });
  // The first run waits until this host has been probed.
  await server.client.run(demo(["say Probed."])).result;
  if (noBrowser === undefined) browser = await startBrowser();
});

afterAll(async () => {
  await browser?.close();
  await server.close();
});

afterEach(async () => {
  for (const { page } of opened.splice(0)) await page.context().close();
});

type Look = Parameters<TestBrowser["open"]>[0] & {
  readonly role?: "viewer" | "answerer" | "operator";
  readonly user?: string;
};

/** A signed-in page. Skips the test where no browser can be started. */
async function signedIn(context: TestContext, { role, user, ...look }: Look = {}): Promise<SeenPage> {
  if (browser === undefined) return context.skip(`host: ${noBrowser}`);
  const seen = await browser.open(look);
  opened.push(seen);
  await seen.page.goto(await server.link(role, user));
  await seen.page.getByRole("heading", { name: "Runs" }).waitFor();
  return seen;
}

const goTo = (page: Page, path: string) => page.goto(`${server.url}/console${path}`);

/** Serious findings of axe, each with the elements that it names. */
async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const found: { impact: string; id: string; nodes: { html: string }[] }[] = JSON.parse(
    await page.evaluate<string>(
      `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => JSON.stringify(violations))`,
    ),
  );
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`);
}

/** Pixels by which a page is wider than its window. */
const overflow = (page: Page) =>
  page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");

/** A run that waits for its user, held open. */
async function askingRun(runId: string, line: string) {
  const request = demo(["say I ask first.", line, "say It goes on."], {
    runId,
    permissions: { default: "ask" },
    sandboxPermission: boundary,
    interactions: { waitMs: 120_000 },
  });
  const run = server.client.run(request);
  for await (const event of run) if (event.type === "interaction_request") return;
}

/** All that a run did, as JSON. */
async function eventsOf(runId: string): Promise<string> {
  return JSON.stringify(await Array.fromAsync(server.client.attach(runId)));
}

async function ended(runId: string) {
  return await server.client.attach(runId).result;
}

/** What a signed-in page sends with each request. */
type Signed = Readonly<Record<"cookie" | "x-ambit-console", string>>;

const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${server.url}${path}`, { headers });

async function signedSession(body: object): Promise<Signed> {
  const response = await post("/console/session", body);
  const { proof } = JSON.parse(await response.text());
  const [cookie = ""] = (response.headers.get("set-cookie") ?? "").split(";");
  return { cookie, "x-ambit-console": proof };
}

async function codeOf(role: "viewer" | "answerer" | "operator"): Promise<string> {
  return new URL(await server.link(role)).hash.replace("#code=", "");
}

describe("the page", () => {
  it("allows no inline script or style, no frame, and nothing of another origin", async () => {
    const response = await get("/console");
    const policy = response.headers.get("content-security-policy");
    expect(response.status).toBe(200);
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain(
      "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    const html = await response.text();
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
    expect(html.match(/(?:src|href)="(?!\/console\/)/g)).toBeNull();
  });

  it("says what isn't there, and is only read", async () => {
    expect((await get("/console/assets/%2e%2e%2f%2e%2e%2fpackage.json")).status).toBe(404);
    expect((await get("/console/assets/none.js")).status).toBe(404);
    expect((await post("/console/", {})).status).toBe(405);
  });
});

describe("a session", () => {
  it("is exchanged for a token, in a cookie that no script reads and no other site sends", async () => {
    const response = await post("/console/session", { token: operatorToken });
    expect(response.headers.get("set-cookie")).toMatch(
      /; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    expect(await response.json()).toMatchObject({
      signedIn: true,
      role: "operator",
      proof: expect.any(String),
    });
    expect((await post("/console/session", { token: "not-a-token-of-this-server" })).status).toBe(401);
  });

  it("is signed in to by a link once", async () => {
    const code = await codeOf("operator");
    expect((await post("/console/session", { code })).status).toBe(200);
    const second = await post("/console/session", { code });
    expect(second.status).toBe(401);
    expect(await second.json()).toMatchObject({ error: expect.stringContaining("ambit console") });
  });

  it("counts only with its proof, which a page of another origin doesn't have", async () => {
    const signed = await signedSession({ token: operatorToken });
    expect((await get("/runs", signed)).status).toBe(200);
    expect((await get("/runs", { cookie: signed.cookie })).status).toBe(401);
    expect((await get("/runs", { ...signed, "x-ambit-console": "forged" })).status).toBe(401);
    const other = await signedSession({ token: operatorToken });
    expect((await get("/runs", { ...signed, "x-ambit-console": other["x-ambit-console"] })).status).toBe(401);
  });

  it("is refused to another origin's page, even with cookie and proof", async () => {
    const signed = await signedSession({ token: operatorToken });
    const plan = (headers: Readonly<Record<string, string>>) =>
      post("/plan", demo(["say x"]), { ...signed, ...headers });
    expect((await plan({ origin: server.url })).status).toBe(200);
    const port = Number(new URL(server.url).port);
    for (const origin of ["https://evil.example", `http://127.0.0.1:${port + 1}`, "null"])
      expect((await plan({ origin })).status).toBe(403);
    expect((await plan({ "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await plan({ "sec-fetch-site": "same-site" })).status).toBe(403);
    const stolen = await post(
      "/console/session",
      { token: operatorToken },
      { origin: "https://evil.example" },
    );
    expect(stolen.status).toBe(403);
  });

  it("can't be changed by its holder", async () => {
    const signed = await signedSession({ code: await codeOf("viewer") });
    const [name = "", value = ""] = signed.cookie.split("=");
    const [content = "", signature = ""] = value.split(".");
    const session = JSON.parse(Buffer.from(content, "base64url").toString());
    const forged = Buffer.from(JSON.stringify({ ...session, role: "operator" })).toString("base64url");
    expect((await get("/runs", signed)).status).toBe(200);
    expect((await get("/runs", { ...signed, cookie: `${name}=${forged}.${signature}` })).status).toBe(401);
  });

  it("of a tenant sees its project only", async () => {
    await server.client.run(demo(["say of the operator"], { runId: "of-the-operator" })).result;
    const signed = await signedSession({ token: tenantToken });
    expect(await (await get("/console/session", signed)).json()).toMatchObject({ project: "acme" });
    expect((await get("/runs/of-the-operator", signed)).status).toBe(404);
    expect(await (await get("/runs", signed)).json()).toEqual({ runs: [] });
    expect((await get("/metrics", signed)).status).toBe(403);
    expect((await get("/runs/of-the-operator", await signedSession({ token: operatorToken }))).status).toBe(
      200,
    );
  });
});

describe("a role", () => {
  it.each([
    { role: "viewer", reads: 200, answers: 403, starts: 403, links: 403 },
    { role: "answerer", reads: 200, answers: 404, starts: 403, links: 403 },
    { role: "operator", reads: 200, answers: 404, starts: 200, links: 200 },
  ] as const)("$role may do what it says, and no more", async ({ role, reads, answers, starts, links }) => {
    const signed = await signedSession({ code: await codeOf(role) });
    expect((await get("/runs", signed)).status).toBe(reads);
    expect((await post("/plan", demo(["say x"], { sandboxPermission: boundary }), signed)).status).not.toBe(
      403,
    );
    expect((await post("/runs/none/interactions/none", { approved: true }, signed)).status).toBe(answers);
    expect((await post("/run", demo(["say x"]), signed)).status).toBe(starts);
    expect((await post("/console/links", {}, signed)).status).toBe(links);
  });
});

it("is small at first view", () => {
  const html = readFileSync(`${pageFolder}/index.html`, "utf8");
  const first = [...html.matchAll(/(?:src|href)="\/console\/([^"]+\.(?:js|css))"/g)].map(
    ([, path = ""]) => path,
  );
  const fonts = ["geist-latin-wght", "geist-mono-latin-wght"];
  const css = readFileSync(`${pageFolder}/${first.find((path) => path.endsWith(".css"))}`, "utf8");
  const fontBytes = fonts.map((name) => {
    const [path = ""] = new RegExp(`assets/${name}[^)"]*\\.woff2`).exec(css) ?? [];
    return statSync(`${pageFolder}/${path}`).size;
  });
  const compressed = first.map(
    (path) => gzipSync(readFileSync(`${pageFolder}/${path}`), { level: 9 }).length,
  );
  const total = [...compressed, ...fontBytes].reduce((sum, bytes) => sum + bytes, 0);
  expect(first.length).toBeGreaterThan(1);
  expect(total).toBeLessThan(350 * 1_024);
});

describe("a token of a user's page", () => {
  const asked = { sessionId: "s", may: ["read"], projectId: "acme" };

  it("signs in to no console, and only an operator's session makes one", async () => {
    const operator = { authorization: `Bearer ${operatorToken}` };
    const { token } = JSON.parse(await (await post("/tokens", asked, operator)).text());
    expect((await post("/console/links", {}, { authorization: `Bearer ${token}` })).status).toBe(403);
    expect((await post("/console/session", { token })).status).toBe(401);
    expect(
      (await post("/tokens", asked, await signedSession({ code: await codeOf("answerer") }))).status,
    ).toBe(403);
    // The controls.
    expect((await post("/console/links", {}, operator)).status).toBe(200);
    expect(
      (await post("/tokens", asked, await signedSession({ code: await codeOf("operator") }))).status,
    ).toBe(200);
  });
});

describe("runs", () => {
  it("appear by themselves, with their outcome and their boundary", async (context) => {
    const { page, complaints } = await signedIn(context);
    await server.client.run(demo(["say Done."], { sandboxPermission: boundary, runId: "good-run" })).result;
    const row = page.getByRole("listitem").filter({ hasText: "good-run" });
    await row.getByText("Completed").waitFor();
    await row.getByText("Confined").waitFor();
    await server.client.run(demo(["fail no luck"], { runId: "no-luck-run" })).result.catch(() => undefined);
    const failed = page.getByRole("listitem").filter({ hasText: "no-luck-run" });
    await failed.getByText("No boundary").waitFor();
    await page.getByRole("radio", { name: "Failed" }).click();
    await failed.getByText("Failed", { exact: true }).waitFor();
    await row.waitFor({ state: "detached" });
    expect(page.url()).toContain("show=failed");
    await page.reload();
    await failed.waitFor();
    await page.getByLabel("Sandbox").selectOption("local");
    await failed.waitFor();
    expect(page.url()).toContain("sandbox=local");
    await page.getByLabel("Session").fill("none");
    await page.getByText("No run is like this").waitFor();
    await page.getByRole("link", { name: "Show all runs" }).click();
    await row.waitFor();
    await page.keyboard.press("Tab");
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it("stream in without moving what is read, and appear at the top where that is in view", async (context) => {
    const { page } = await signedIn(context, { height: 420 });
    const start = (runId: string) => server.client.run(demo(["say In."], { runId })).result;
    await Promise.all(Array.from({ length: 8 }, (_, at) => start(`earlier-${at}`)));
    const list = page.getByRole("list", { name: "Runs" });
    await list.getByText("earlier-0").waitFor();
    // In the page, so that no frame lies between the two looks. The row in the middle is the one that is read.
    const look = (id = "") =>
      page.evaluate<{ id: string; top: number; height: number }>(`(() => {
        const list = document.querySelector('ul[aria-label="Runs"]');
        const { top, height } = list.parentElement.getBoundingClientRect();
        const row = ${JSON.stringify(id)} === ""
          ? document.elementFromPoint(300, top + height / 2).closest("li")
          : [...list.children].find((one) => one.textContent.includes(${JSON.stringify(id)}));
        return { id: row.querySelector("code").textContent, top: row.getBoundingClientRect().top, height: list.offsetHeight };
      })()`);
    const grown = (height: number) =>
      expect.poll(async () => (await look()).height, { timeout: 60_000 }).toBeGreaterThan(height);
    await page.evaluate(`document.querySelector('ul[aria-label="Runs"]').parentElement.scrollTo(0, 130)`);
    const read = await look();
    await start("in-above");
    await grown(read.height);
    expect(await look(read.id)).toMatchObject({ top: read.top });
    // The control: where the page can't move its list, what is read moves.
    await page.evaluate(`Object.defineProperty(Element.prototype, "scrollTop", {
      ...Object.getOwnPropertyDescriptor(Element.prototype, "scrollTop"),
      set() {},
    })`);
    const before = await look(read.id);
    await start("in-more");
    await grown(before.height);
    expect((await look(read.id)).top).toBeGreaterThan(before.top);
    await page.reload();
    await list.getByText("in-more").waitFor();
    await start("in-at-top");
    await list.getByRole("listitem").first().getByText("in-at-top").waitFor();
  });

  it("show on a phone and in the dark", async (context) => {
    const { page } = await signedIn(context, { theme: "dark", width: 390, height: 844 });
    await page.getByRole("listitem").first().waitFor();
    expect(await overflow(page)).toBe(0);
    expect(await accessibilityFaults(page)).toEqual([]);
  });
});

describe("a run's page", () => {
  it("shows what the agent said and did, live", async (context) => {
    const { page, complaints } = await signedIn(context);
    const lines = [
      "plan Look; Write",
      "say This is **important**.",
      "run echo out-of-$((40 + 2))",
      "fetch https://example.com/",
    ];
    await server.client.run(demo(lines, { runId: "shown", sandboxPermission: boundary })).result;
    await goTo(page, "/runs/shown");
    await page.locator("strong", { hasText: "important" }).waitFor();
    await page.getByText("Refused a connection to").waitFor();
    await page.getByRole("button", { name: /^run echo/ }).click();
    await page.getByRole("region", { name: "Result" }).getByText("out-of-42").waitFor();
    await page.getByText("Look (in progress)").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it("shows when everything happened, also of a stored run, and leads from a bar to its call", async (context) => {
    const lines = [
      "say First.",
      "delegate say I look.\\nrun echo nested; exit 1",
      ...Array.from({ length: 40 }, (_, at) => `run echo number ${at}`),
      "say Last.",
    ];
    await server.client.run(demo(lines, { runId: "timed" })).result;
    const records = await Array.fromAsync(server.client.attach("timed").records());
    const times = records.map(({ at = "" }) => at);
    expect(times).not.toContain("");
    const { page } = await signedIn(context);
    await goTo(page, "/runs/timed");
    const timeline = page.getByRole("complementary", { name: "Facts of the run" });
    for (const stage of ["Opening the sandbox", "Starting the agent", "Agent"])
      await timeline.getByTitle(new RegExp(`^${stage}: done`)).waitFor();
    const call = records.find(({ event }) => event.type === "tool_call");
    const activity = page.getByRole("region", { name: "Activity" });
    expect(
      await activity.locator("time").evaluateAll((all) => all.map((one) => one.getAttribute("datetime"))),
    ).toContain(call?.at);
    const nested = timeline.getByRole("button", { name: /^Show run echo nested; exit 1.*failed/ });
    const last = timeline.getByRole("button", { name: /^Show run echo number 39.*done/ });
    await last.click();
    await activity.getByRole("region", { name: "Result" }).getByText("number 39").waitFor();
    // By keyboard: the call that was shown has the focus.
    await nested.focus();
    await page.keyboard.press("Enter");
    await activity.locator(':focus:has-text("echo nested")').waitFor();
    expect(await activity.locator(":focus").getAttribute("aria-expanded")).toBe("true");
    await timeline.getByRole("button", { name: "By the clock" }).click();
    const clock = new Intl.DateTimeFormat("en-US", { timeStyle: "medium" }).format(new Date(call?.at ?? ""));
    await activity.getByText(clock).first().waitFor();
    await page.getByRole("button", { name: "First error" }).click();
    await activity.locator(':focus:has-text("echo nested")').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  it("looks as README and docs show it", async (context) => {
    const lines = [
      "plan Write the notes; Check them; Publish",
      "think The notes of the release are missing: I write them first.",
      "say I write the **notes of the release**, then publish it.",
      "write notes/release.md # Release 1.4",
      "fetch https://packages.example/",
      "run! ./publish.sh --tag v1.4 notes/release.md",
      "say Published.",
    ];
    const request = demo(lines, {
      runId: "release-notes",
      permissions: {
        default: "ask",
        rules: [
          { pattern: "write", permission: "allow" },
          { pattern: "fetch", permission: "allow" },
        ],
      },
      sandboxPermission: boundary,
      interactions: { waitMs: 120_000 },
    });
    for await (const event of server.client.run(request)) if (event.type === "interaction_request") break;
    const { page } = await signedIn(context, { width: 1200, height: 750 });
    await goTo(page, "/runs/release-notes");
    await page.getByRole("region", { name: "Command" }).getByText("./publish.sh --tag v1.4").waitFor();
    await page.locator("strong", { hasText: "notes of the release" }).waitFor();
    await page.getByText("Refused a connection to").waitFor();
    // AMBIT_SCREENSHOT=docs/images/console-run.png makes the picture again.
    const { AMBIT_SCREENSHOT: path } = process.env;
    if (path !== undefined) await page.screenshot({ path });
    await server.client.cancelRun("release-notes");
    expect(await ended("release-notes")).toMatchObject({ stopReason: "cancelled" });
  });

  it("says why a run failed, and looks unconfined where it was", async (context) => {
    const { page } = await signedIn(context, { theme: "dark" });
    await server.client.run(demo(["fail no luck"], { runId: "failed" })).result.catch(() => undefined);
    await goTo(page, "/runs/failed");
    await page.getByRole("alert").filter({ hasText: "Harness failed" }).getByText("no luck").waitFor();
    await page.getByRole("note").getByText("nothing of this run is guaranteed").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
  });

  it("cancels a run, which a viewer can't", async (context) => {
    await askingRun("to-cancel", "run! echo never");
    const { page: viewers } = await signedIn(context, { role: "viewer" });
    await goTo(viewers, "/runs/to-cancel");
    await viewers.getByText("Your role may read questions").waitFor();
    expect(await viewers.getByRole("button", { name: "Cancel" }).count()).toBe(0);
    const { page } = await signedIn(context);
    await goTo(page, "/runs/to-cancel");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Cancelled", { exact: true }).waitFor();
    expect(await ended("to-cancel")).toMatchObject({ stopReason: "cancelled" });
  });

  it("with 15,000 events has few elements", async (context) => {
    const pairs = Array.from({ length: 2_500 }, (_, at) => [`say line ${at}`, `think thought ${at}`]);
    await server.client.run(demo(pairs.flat(), { runId: "long" })).result;
    const { page } = await signedIn(context);
    await goTo(page, "/runs/long");
    await page.getByText("line 0", { exact: true }).waitFor();
    await page.getByRole("button", { name: "To the end" }).click();
    await page.getByText("Completed.").waitFor();
    expect(await page.locator("ol > li").count()).toBeLessThan(100);
  });

  it("goes on after the server has restarted", async (context) => {
    const { page } = await signedIn(context);
    await server.client.run(demo(["say Still here."], { runId: "restarted" })).result;
    await server.restart(async () => {
      await page.getByText("The server can't be reached").waitFor();
    });
    await page.getByText("The server can't be reached").waitFor({ state: "detached" });
    await goTo(page, "/runs/restarted");
    await page.getByText("Still here.").waitFor();
  });

  it("asks to sign in again when its session has ended", async (context) => {
    const { page } = await signedIn(context);
    await page.context().clearCookies();
    await page.getByText("Your session has ended.").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByLabel("Token").fill("no-token-of-this-server");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("No token of this server").waitFor();
  });
});

describe("a real agent, with a scripted model", () => {
  it("asks, is approved, and shows what it changed", async (context) => {
    const { page, complaints } = await signedIn(context);
    await using model = await startModelServer({ expectedKey: "key-of-this-test" });
    const edit = '[[call write_file {"file_path":"/workspace/notes.md","content":"# Seen"}]]';
    const run = server.client.run({
      runId: "gemini",
      harness: "gemini",
      messages: [
        {
          role: "user",
          content: `[[think Where are they?]] [[say I write the notes.]] ${edit} [[say Written.]]`,
        },
      ],
      permissions: { default: "ask" },
      sandboxPermission: {
        network: { mode: "allowlist", allowlist: [new URL(model.url).host] },
        filesystem: "workspace",
      },
      interactions: { waitMs: 100_000 },
      outputs: { patch: true, include: ["**"] },
      modelConnection: {
        provider: "google",
        endpoint: { baseUrl: model.url },
        credentials: [
          { binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: "key-of-this-test" },
        ],
      },
    });
    for await (const event of run) if (event.type === "interaction_request") break;
    await goTo(page, "/runs/gemini");
    await page.getByText("I write the notes.").waitFor();
    await page
      .getByRole("region", { name: /^Question about/ })
      .getByText("# Seen")
      .waitFor();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("Written.").waitFor();
    expect(await ended("gemini")).toMatchObject({ ok: true });
    await page.getByRole("link", { name: "Files" }).click();
    await page.getByRole("region", { name: "notes.md" }).getByText("# Seen").waitFor();
    expect(await page.content()).not.toContain("key-of-this-test");
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });
});

/**
 * What a person without a mouse can't reach on a page, or can't see that it has the focus, by the Tab key alone. Of a group of
 * radio buttons, one is enough: arrows reach the others.
 */
async function beyondKeyboard(page: Page): Promise<readonly string[]> {
  await page.evaluate(`document.activeElement?.blur(); window.seenByTab = new Map()`);
  const controls = `[...document.querySelectorAll("a[href], button:enabled, input:enabled, select:enabled, textarea:enabled")]
    .filter((control) => control.checkVisibility() && control.getAttribute("role") !== "radio" && control.type !== "radio")`;
  const count = await page.evaluate<number>(`${controls}.length`);
  for (let presses = 0; presses < count + 20; presses += 1) {
    await page.keyboard.press("Tab");
    await page.evaluate(`{
      const { outlineStyle, boxShadow, position } = getComputedStyle(document.activeElement);
      window.seenByTab.set(document.activeElement, outlineStyle !== "none" || boxShadow !== "none");
    }`);
  }
  return await page.evaluate<string[]>(
    `${controls}.filter((control) => !window.seenByTab.get(control)).map((control) => control.outerHTML.slice(0, 200))`,
  );
}

describe("every screen", () => {
  const places = ["/runs?session=none", "/questions", "/start", "/usage", "/host"];
  for (const tab of ["activity", "output", "files", "boundary"]) places.push(`/runs/each?tab=${tab}`);

  beforeAll(async () => {
    const lines = ["write seen.txt yes", "run echo seen", "fetch https://example.com/"];
    const request = demo(lines, { runId: "each", sandboxPermission: boundary, outputs: { patch: true } });
    await server.client.run(request).result;
  });

  it("fits a phone, in the dark", async (context) => {
    const { page, complaints } = await signedIn(context, { theme: "dark", width: 390, height: 844 });
    for (const place of places) {
      await goTo(page, place);
      await page.getByRole("main").getByRole("heading").first().waitFor();
      await page.waitForLoadState("networkidle");
      expect(await overflow(page), place).toBe(0);
      expect(await accessibilityFaults(page), place).toEqual([]);
    }
    expect(complaints).toEqual([]);
  });

  it("is used without a mouse", async (context) => {
    const { page } = await signedIn(context);
    for (const place of places) {
      await goTo(page, place);
      await page.getByRole("main").getByRole("heading").first().waitFor();
      await page.waitForLoadState("networkidle");
      expect(await beyondKeyboard(page), place).toEqual([]);
    }
    // The control.
    await page.evaluate(`document.querySelector("main button").tabIndex = -1`);
    expect(await beyondKeyboard(page)).toHaveLength(1);
  });
});

describe("a run's files and boundary", () => {
  it("show what changed, download it, and suggest the rule for what was refused", async (context) => {
    const { page, complaints } = await signedIn(context, { theme: "dark" });
    const lines = ["write notes/today.md # Today", "fetch https://example.com/", "say Done."];
    const outputs = { patch: true, include: ["**"] };
    await server.client.run(demo(lines, { runId: "files", sandboxPermission: boundary, outputs })).result;
    await goTo(page, "/runs/files?tab=files");
    await page.getByRole("heading", { name: "1 file changed" }).waitFor();
    await page.getByRole("region", { name: "notes/today.md" }).getByText("# Today").waitFor();
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download notes/today.md" }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe("today.md");
    expect(readFileSync(await download.path(), "utf8")).toBe("# Today");
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole("link", { name: "Boundary" }).click();
    await page.getByText("No outbound connection succeeds").waitFor();
    await page.getByRole("button", { name: "Rule that would allow it" }).click();
    await page.getByText('"allowlist": ["example.com"]').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await overflow(page)).toBe(0);
    expect(complaints).toEqual([]);
  });
});

describe("a run's output", () => {
  it("is shown as a terminal shows it, searched, and can't lie", async (context) => {
    const { page, complaints } = await signedIn(context, { theme: "dark" });
    const printed = [
      "\\033[31mfailed\\033[0m 10%%\\r20%%\\n",
      "rm -rf precious\\recho harmless\\n",
      "\\033]0;Another title\\007\\033]8;;https://evil.example\\007https://bank.example\\033]8;;\\007\\n",
    ];
    const lines = [`run printf '${printed.join("")}'`, "run seq 2000", "say Done."];
    await server.client.run(demo(lines, { runId: "printed", sandboxPermission: boundary })).result;
    await goTo(page, "/runs/printed?tab=output");
    const output = page.getByRole("log", { name: "Output" });
    await output.getByText("echo harmless", { exact: true }).waitFor();
    await output.getByRole("button", { name: "replaced 1 text" }).last().click();
    await output.getByText("rm -rf precious", { exact: true }).waitFor();
    await output.getByText("https://bank.example", { exact: true }).waitFor();
    expect(await page.getByRole("link", { name: /bank|evil/ }).count()).toBe(0);
    expect(await page.title()).not.toContain("Another");
    await page.getByRole("searchbox", { name: "Search the output" }).fill("1999");
    await page.getByText("1 line", { exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await output.getByText("1999", { exact: true }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await overflow(page)).toBe(0);
    expect(complaints).toEqual([]);
  });
});

describe("a session's workspace", () => {
  it("is opened folder by folder, shows its files, and says when it has ended", async (context) => {
    const { page, complaints } = await signedIn(context, { role: "viewer" });
    const lines = ["write src/app/main.ts const answer = 42;", "run ln -s /etc host", "say Done."];
    const request = { runId: "tree", sessionId: "tree", projectId: "acme", sandboxPermission: boundary };
    await server.client.run(demo(lines, request)).result;
    await goTo(page, "/runs/tree?tab=files");
    const tree = page.getByRole("region", { name: "Workspace" });
    await tree.getByTitle("A link: it isn't followed").waitFor();
    await tree.getByRole("button", { name: "src" }).click();
    await tree.getByRole("button", { name: "app" }).click();
    await tree.getByRole("button", { name: /^main\.ts/ }).click();
    await tree.getByRole("region", { name: "Content" }).getByText("const", { exact: true }).waitFor();
    const downloading = page.waitForEvent("download");
    await tree.getByRole("button", { name: "Download" }).click();
    expect(readFileSync(await (await downloading).path(), "utf8")).toBe("const answer = 42;");
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await overflow(page)).toBe(0);
    expect(complaints).toEqual([]);
    await new AmbitClient({ url: server.url, token: operatorToken, projectId: "acme" }).closeSession("tree");
    await tree.getByRole("button", { name: "Look again" }).click();
    await tree.getByText("isn't open any more").waitFor();
  });
});

describe("questions", () => {
  it("are answered by keyboard, with what exactly is approved in view", async (context) => {
    await askingRun("by-keyboard", "run! echo approved > approved.txt; cat approved.txt");
    const { page, complaints } = await signedIn(context);
    await goTo(page, "/questions");
    await page
      .getByRole("region", { name: "Command" })
      .getByText("echo approved > approved.txt; cat approved.txt")
      .waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press("a");
    await page.getByText("Nothing waits for you").waitFor();
    expect(await ended("by-keyboard")).toMatchObject({
      ok: true,
      output: expect.stringContaining("It goes on."),
    });
    expect(complaints).toEqual([]);
  });

  it("are answered together", async (context) => {
    const runs = ["together-1", "together-2", "together-3"];
    for (const runId of runs) await askingRun(runId, `run! echo ${runId}`);
    const { page } = await signedIn(context);
    await goTo(page, "/questions");
    const boxes = page.getByRole("checkbox");
    await expect.poll(() => boxes.count()).toBe(3);
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByRole("region", { name: "Selected questions" }).getByText("2 selected").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press("d");
    await expect.poll(() => boxes.count()).toBe(1);
    await page.keyboard.press("a");
    for (const runId of runs) expect(await ended(runId)).toMatchObject({ ok: true });
    const questions = await Promise.all(runs.map((runId) => server.client.interactions({ runId })));
    const approvals = questions.map(({ interactions: [question] }) => question?.answeredBy?.approved);
    expect(approvals.toSorted()).toEqual([false, false, true]);
  });

  it("say so where another person answered first", async (context) => {
    await askingRun("twice", "run! echo one");
    const { page: first } = await signedIn(context, { role: "answerer", user: "Anna" });
    const { page: second } = await signedIn(context, { user: "Ben" });
    await Promise.all([goTo(first, "/runs/twice"), goTo(second, "/runs/twice")]);
    const approve = { name: "Approve" };
    await second.getByRole("button", approve).waitFor();
    // The second page doesn't hear of the first one's answer before its own.
    await second.route("**/interactions*", (route) => route.abort());
    const answers = [first, second].map((page) => page.getByRole("button", approve).click());
    await Promise.allSettled(answers);
    expect(await ended("twice")).toMatchObject({ ok: true });
    for (const page of [first, second]) await page.getByText("It goes on.").waitFor();
    expect(await second.getByText("That didn't work").count()).toBe(0);
    await goTo(first, "/questions");
    await first.getByRole("button", { name: "Show what was answered" }).click();
    const row = first.getByRole("listitem").filter({ hasText: "twice" });
    await row.getByText("approved").waitFor();
    expect(await row.textContent()).toMatch(/by (Anna|Ben)/);
  });
});

describe("the command palette", () => {
  it("reaches screens, runs and settings without a mouse", async (context) => {
    await server.client.run(demo(["say Found by its name."], { runId: "by-its-name" })).result;
    const { page, complaints } = await signedIn(context);
    const choose = async (text: string) => {
      await page.keyboard.press("Control+k");
      const field = page.getByRole("combobox", { name: "Find a screen, a run or an action" });
      await field.fill(text);
      await page.getByRole("option", { name: text }).first().waitFor();
      await page.keyboard.press("Enter");
      await field.waitFor({ state: "detached" });
    };
    await choose("Host");
    await page.getByRole("heading", { name: "Sandbox local" }).waitFor();
    await choose("by-its-name");
    await page.getByText("Found by its name.").waitFor();
    await choose("Theme: dark");
    expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "Runs" }).first().waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("option", { name: "Runs" }).first().waitFor({ state: "detached" });
    expect(complaints).toEqual([]);
  });
});

describe("a run's start", () => {
  it("shows what is wrong before it starts, and begins it", async (context) => {
    const { page, complaints } = await signedIn(context);
    await page.getByRole("link", { name: "Start", exact: true }).click();
    await page.getByText("Can run, in the sandbox local").waitFor();
    const editor = page.getByLabel("The request, as JSON");
    const request = demo(["say Started here."], { runId: "started", sandboxPermission: boundary });
    await editor.fill(JSON.stringify({ ...request, mesages: [] }));
    await page.getByText("is not a known field").waitFor();
    expect(await page.getByRole("button", { name: "Start the run" }).isDisabled()).toBe(true);
    expect(await accessibilityFaults(page)).toEqual([]);
    await editor.fill(JSON.stringify(request));
    await page.getByText("Can run, in the sandbox local").waitFor();
    await editor.press("Control+Enter");
    await page.getByText("Started here.").waitFor();
    // A browser logs each refusal of a request, which the first plan has got.
    expect(complaints.filter((text) => !text.includes("400"))).toEqual([]);
  });

  it("takes a folder of its user into the workspace, and says when it is too large", async (context) => {
    const { page } = await signedIn(context);
    const folder = await mkdtemp(join(tmpdir(), "ambit-console-folder-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, "notes/deep"), { recursive: true });
    await mkdir(join(folder, "node_modules/left"), { recursive: true });
    await writeFile(join(folder, "notes/deep/a.md"), "from my disk, ä");
    await writeFile(join(folder, "image.bin"), Buffer.from([0, 255, 1]));
    await writeFile(join(folder, "node_modules/left/index.js"), "0");
    await goTo(page, "/start");
    const request = demo(["read notes/deep/a.md", "run od -An -tx1 image.bin; ls"], {
      runId: "from-a-folder",
      sandboxPermission: boundary,
    });
    await page.getByLabel("The request, as JSON").fill(JSON.stringify(request));
    const chooser = page.getByLabel("Folder for the workspace");
    await chooser.setInputFiles(folder);
    await page.getByText(/: 2 files, 19 B, without node_modules/).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.getByRole("heading", { name: "demo" }).waitFor();
    const events = await eventsOf("from-a-folder");
    expect(events).toContain("from my disk, ä");
    expect(events).toMatch(/00 ff 01\\nimage.bin\\nnotes/);
    await goTo(page, "/start");
    await writeFile(join(folder, "large.bin"), Buffer.alloc(9 * 1024 * 1024));
    await chooser.setInputFiles(folder);
    await page.getByRole("alert").getByText("more than a request takes").waitFor();
  });
});

describe("a comparison", () => {
  it("shows two runs side by side, with what differs", async (context) => {
    const change = { sandboxPermission: boundary, outputs: { patch: true } };
    const first = ["run echo same", "write a.txt one", "say It was one."];
    const second = ["run echo same", "run echo more", "write a.txt two", "say It was two."];
    await server.client.run(demo(first, { runId: "left", ...change })).result;
    await server.client.run(demo(second, { runId: "right", ...change, sandboxPermission: {} })).result;
    const { page, complaints } = await signedIn(context);
    await goTo(page, "/runs/left");
    await page.getByRole("button", { name: "Use again" }).click();
    await page.getByRole("menuitem", { name: "Compare with another run" }).click();
    const offered = page.getByRole("list", { name: "Runs to compare with" });
    await offered.getByRole("link", { name: /right/ }).click();
    await page.getByText("What it said").waitFor();
    expect(new URL(page.url()).search).toBe("?a=left&b=right");
    const requests = page.getByRole("region", { name: "request.json" });
    await requests.getByText("run echo more").waitFor();
    // What names a run isn't a difference of their requests.
    expect(await requests.textContent()).not.toContain("runId");
    const boundaries = page.getByRole("definition").filter({ hasText: /Confined|No boundary/ });
    expect(await boundaries.allTextContents()).toEqual(["Confined", "No boundary"]);
    await page.getByText("not guaranteed").first().waitFor();
    const calls = page.getByRole("listitem");
    const lines = (await calls.allTextContents()).map((text) =>
      text.replaceAll(/\d+(\.\d+)? m?s/g, "").trim(),
    );
    expect(lines).toEqual([
      "run echo samerun echo same",
      "not maderun echo more",
      "write /workspace/a.txtwrite /workspace/a.txt",
    ]);
    await page.getByText("It was two.", { exact: true }).waitFor();
    await page.getByText("a.txt", { exact: true }).click();
    await page.getByText("added · added").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
    // An ended run doesn't change, and neither does its address.
    await page.reload();
    await page.getByText("It was two.", { exact: true }).waitFor();
    // As of a run whose request isn't kept.
    await page.route("**/runs/right/request*", (route) =>
      route.continue({ url: `${server.url}/runs/none/request` }),
    );
    await page.reload();
    await page.getByText("Without right: There is no run 'none'").waitFor();
    const { page: phone } = await signedIn(context, { theme: "dark", width: 390 });
    await goTo(phone, "/compare?a=left&b=right");
    await phone.getByText("It was two.", { exact: true }).waitFor();
    expect(await overflow(phone)).toBe(0);
    expect(await accessibilityFaults(phone)).toEqual([]);
  });
});

describe("use", () => {
  it("is added up by day and project, with the range in the address, beside the quotas", async (context) => {
    const request = demo(["say of acme"], { projectId: "acme" });
    await server.client.run(request).result;
    await server.client.run(demo(["fail no luck"], { projectId: "acme" })).result.catch(() => undefined);
    const { page, complaints } = await signedIn(context, { theme: "dark" });
    await page.getByRole("link", { name: "Use", exact: true }).click();
    const row = page.getByRole("row").filter({ hasText: "acme" });
    await row.getByRole("cell").nth(1).getByText("1", { exact: true }).waitFor();
    await page.getByLabel("Concurrent runs").waitFor();
    await page.getByText("5 left").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    // By keyboard: another range, and each day of the chart.
    await page.getByRole("radio", { name: "7 days" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL("**days=7");
    await page.getByRole("radio", { name: "Agent" }).click();
    await page.getByRole("row").filter({ hasText: "demo" }).waitFor();
    const slider = page.getByRole("slider", { name: "Runs by day" });
    await slider.focus();
    await page.keyboard.press("ArrowLeft");
    expect(await slider.getAttribute("aria-valuetext")).toMatch(/: \d/);
    await page.reload();
    await page.getByRole("row").filter({ hasText: "demo" }).waitFor();
    await page.getByLabel("Last day").fill("2020-01-31");
    await page.getByText("No run ended on these days").waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await overflow(page)).toBe(0);
    expect(complaints).toEqual([]);
  });
});

describe("a run's request", () => {
  it("begins it again, changed, and is kept as a command, a file and a test", async (context) => {
    const { page, complaints } = await signedIn(context);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const key = "a-key-that-stays-with-its-owner";
    const request = demo(["say Once.", "run echo more"], {
      runId: "to-repeat",
      sandboxPermission: boundary,
      modelConnection: {
        credentials: [{ binding: { kind: "environment", name: "DEMO_KEY" }, value: key }],
      },
    });
    await server.client.run(request).result;
    await goTo(page, "/runs/to-repeat");
    await page.getByText("Completed.").waitFor();
    const choose = async (name: string) => {
      await page.getByRole("button", { name: "Use again" }).click();
      await page.getByRole("menuitem", { name }).click();
    };
    const saved = async (name: string) => {
      const downloading = page.waitForEvent("download");
      await choose(name);
      return readFileSync(await (await downloading).path(), "utf8");
    };
    await choose("Copy as curl that repeats it");
    await page.getByText("Copied: set AMBIT_TOKEN").waitFor();
    const copied = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(copied).toContain("run echo more");
    const file = await saved("Download the request");
    expect(JSON.parse(file)).toMatchObject({
      harness: "demo",
      modelConnection: { credentials: [{ value: "[redacted]" }] },
    });
    const test = await saved("Download as a test case");
    expect(test).toContain('assert.deepEqual(tools, ["run"])');
    expect(test).toContain('"[redacted]".replaceAll("[redacted]", process.env.AMBIT_TEST_SECRET_1 ?? "")');
    for (const text of [copied, file, test]) expect(text).not.toContain(key);
    await choose("Run again, changed");
    await page.getByText("fill in each").waitFor();
    const editor = page.getByLabel("The request, as JSON");
    const text = await editor.inputValue();
    expect(text).not.toContain("to-repeat");
    await editor.fill(text.replace("[redacted]", "another-key").replace("say Once.", "say Once more."));
    await page.getByText("Can run, in the sandbox local").waitFor();
    await editor.press("Control+Enter");
    await page.getByText("Once more.").waitFor();
    expect(complaints).toEqual([]);
  });
});

describe("the host", () => {
  it("shows what each sandbox was proven to guarantee", async (context) => {
    const { page, complaints } = await signedIn(context);
    await goTo(page, "/host");
    await page.getByRole("heading", { name: "Sandbox local" }).waitFor();
    await page.getByRole("button", { name: "No outbound connection succeeds" }).click();
    await page.getByText("network.deny").waitFor();
    await page.getByText("ambit verify --sandbox local").waitFor();
    const agent = (title: string) => page.getByRole("listitem").filter({ hasText: title });
    await agent("demo").getByText("comes with its plugin").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });
});

/** What an agent may try on the person who reads it. */
describe("what an agent prints", () => {
  const attack = [
    "say <img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>",
    "say [press me](javascript:document.title='owned') [or me](data:text/html,<script>1</script>)",
    "say ![tracker](https://tracker.example/pixel.png)",
    "run printf '\\033]0;owned\\007\\033[2J\\033[1;31mred\\033[0m \\033]8;;https://evil.example\\007link\\033]8;;\\007'",
  ];

  it("becomes no markup, no script, no link of another scheme and no request", async (context) => {
    await server.client.run(demo(attack, { runId: "attack", sandboxPermission: boundary })).result;
    const { page, complaints } = await signedIn(context);
    const requests: string[] = [];
    page.on("request", (request) => void requests.push(request.url()));
    await goTo(page, "/runs/attack");
    await page.getByText("Completed.").waitFor();
    await page.getByText("press me").waitFor();
    await page.getByText("<script>document.title='owned'</script>").waitFor();
    await page.getByRole("button", { name: /^run printf/ }).click();
    await page.getByRole("region", { name: "Result" }).waitFor();
    expect(await page.title()).toBe("Ambit");
    const links = await page.evaluate<string[]>(
      "[...document.querySelectorAll('a')].map((link) => link.getAttribute('href'))",
    );
    expect(links.filter((href) => !/^\/console\/|^#screen$|^https?:/.test(href))).toEqual([]);
    expect(requests.filter((url) => !url.startsWith(server.url))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it("would run as markup in a page without the guards", async (context) => {
    const { page } = await signedIn(context);
    // The control: the same text as HTML, first without this page's policy, then with it.
    const [text = ""] = attack;
    const insert = `document.body.innerHTML = ${JSON.stringify(text.replace("say ", ""))}`;
    await expect(page.evaluate(insert)).rejects.toThrow("TrustedHTML");
    await page.goto("about:blank");
    await page.evaluate(insert);
    await expect.poll(() => page.title()).toBe("owned");
  });

  it("can't hide what is approved behind characters that no one sees", async (context) => {
    await askingRun("hidden", "run! echo safe \u202e# dlrow");
    const { page } = await signedIn(context);
    await goTo(page, "/runs/hidden");
    await page.getByRole("region", { name: "Command" }).getByText("echo safe \\u{202e}# dlrow").waitFor();
    await page.getByRole("button", { name: "Deny" }).click();
    expect(await ended("hidden")).toMatchObject({ ok: true });
  });
});

describe("a terminal in a run's session", () => {
  it("shows what is typed and answered, keeps to its place, and ends by the keyboard", async (context) => {
    const request = {
      runId: "run-typed",
      sessionId: "typed",
      projectId: "acme",
      sandboxPermission: boundary,
    };
    await server.client.run(demo(["write a.txt from-the-run"], request)).result;
    const { page, complaints } = await signedIn(context);
    await goTo(page, "/runs/run-typed?tab=terminal");
    const title = await page.title();
    await page.getByRole("button", { name: "Open a terminal" }).click();
    const screen = page.getByRole("log", { name: "What the terminal shows" });
    await screen.filter({ hasText: "$" }).waitFor();
    await page.keyboard.type("cat a.txt; stty size\n");
    await screen.filter({ hasText: /from-the-run.*[1-9]\d \d\d+/s }).waitFor();
    await page.keyboard.type("cat\n");
    await page.keyboard.press("Control+c");
    // What is typed before the next prompt goes with it.
    await screen.filter({ hasText: "^C/workspace $" }).waitFor();
    await page.keyboard.type(
      "printf '\\033[31m%s\\033[0m \\033]0;forged\\007\\033]8;;https://evil.example\\007link\\033]8;;\\007 d''one\\n' re''d\n",
    );
    await screen.filter({ hasText: "red link done" }).waitFor();
    const red = screen.getByText("red", { exact: true }).last();
    expect(await red.getAttribute("class")).toContain("text-bad");
    expect(await page.title()).toBe(title);
    expect(await screen.locator("a").count()).toBe(0);
    expect(await accessibilityFaults(page)).toEqual([]);
    const acme = new AmbitClient({ url: server.url, token: tenantToken });
    expect(await acme.openTerminal("typed").catch(String)).toMatch("busy with a terminal of the operator");
    await page.keyboard.press("Control+]");
    await page.getByRole("button", { name: "Open a terminal" }).waitFor();
    expect(complaints).toEqual([]);

    const { page: answerers } = await signedIn(context, { role: "answerer" });
    await goTo(answerers, "/runs/run-typed");
    await answerers.getByRole("link", { name: "Output" }).waitFor();
    expect(await answerers.getByRole("link", { name: "Terminal" }).count()).toBe(0);
    const answerer = await signedSession({ code: await codeOf("answerer") });
    expect((await post("/sessions/typed/terminals?projectId=acme", {}, answerer)).status).toBe(403);
  });
});
