import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { noBrowser, type SeenPage, startBrowser, type TestBrowser } from "./support/browser.js";
import { pageFolder } from "./support/built-page.js";
import { boundary, type ConsoleServer, demo, startConsoleServer } from "./support/console-server.js";

let server: ConsoleServer;
let browser: TestBrowser | undefined;
const opened: SeenPage[] = [];

beforeAll(async () => {
  server = await startConsoleServer();
  if (noBrowser === undefined) browser = await startBrowser();
});

afterAll(async () => {
  await browser?.close();
  await server.close();
});

afterEach(async () => {
  for (const { page } of opened.splice(0)) await page.context().close();
});

type Look = Parameters<TestBrowser["open"]>[0] & { readonly role?: "viewer" | "answerer" | "operator" };

/** A signed-in page. Skips the test where no browser can be started. */
async function signedIn(context: TestContext, { role, ...look }: Look = {}): Promise<SeenPage> {
  if (browser === undefined) return context.skip(`host: ${noBrowser}`);
  const seen = await browser.open(look);
  opened.push(seen);
  await seen.page.goto(await server.link(role));
  await seen.page.getByRole("heading", { name: "Runs" }).waitFor();
  return seen;
}

const goTo = (page: Page, path: string) => page.goto(`${server.url}/console${path}`);

/** Serious findings of axe, each with the elements that it names. */
async function accessibilityFaults(page: Page): Promise<readonly string[]> {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(axe);
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

async function ended(runId: string) {
  return await server.client.attach(runId).result;
}

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

describe("runs", () => {
  it("appear by themselves, with their outcome and their boundary", async (context) => {
    const { page, complaints } = await signedIn(context);
    await server.client.run(demo(["say Done."], { sandboxPermission: boundary, sessionId: "listed" })).result;
    const row = page.getByRole("listitem").filter({ hasText: "listed" });
    await row.getByText("Completed").waitFor();
    await row.getByText("Confined").waitFor();
    await server.client
      .run(demo(["fail no luck"], { sessionId: "listed-too" }))
      .result.catch(() => undefined);
    const failed = page.getByRole("listitem").filter({ hasText: "listed-too" });
    await failed.getByText("No boundary").waitFor();
    await page.getByRole("radio", { name: "Failed" }).click();
    await failed.getByText("Failed", { exact: true }).waitFor();
    await row.waitFor({ state: "detached" });
    expect(page.url()).toContain("show=failed");
    await page.reload();
    await failed.waitFor();
    await page.keyboard.press("Tab");
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
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

  it("say so where another person answered first", async (context) => {
    await askingRun("twice", "run! echo one");
    const [{ page: first }, { page: second }] = [await signedIn(context), await signedIn(context)];
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
