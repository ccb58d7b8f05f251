// needs: browser
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { execa } from "execa";
import type { Browser, Page } from "playwright-core";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { repository } from "../support/ambit.js";
import { startBrowser } from "../support/browser.js";

let url = "";
let browser: Browser;

/** The page of examples/chat, as its user starts it, and one browser. */
beforeAll(async () => {
  const { AMBIT_MUST_PROVE: _proofs, ...env } = process.env;
  const example = execa(process.execPath, [join(repository, "examples/chat/start.mjs")], {
    env: { ...env, PORT: "0" },
    extendEnv: false,
    reject: false,
  });
  const said: string[] = [];
  const lines = createInterface({ input: example.stdout });
  for await (const line of lines) {
    said.push(line);
    url = /http:\S+/.exec(line)?.[0] ?? "";
    if (url !== "") break;
  }
  if (url === "") throw new Error(`the example ended: ${said.join("\n")} ${(await example).stderr}`);
  browser = await startBrowser();
  return async () => {
    await browser.close();
    example.kill("SIGTERM");
    await example;
  };
});

interface Opened {
  readonly page: Page;
  /** The messages and answers that it has sent. */
  readonly sent: unknown[];
}

async function open(options: Parameters<Browser["newPage"]>[0] = {}, path = ""): Promise<Opened> {
  const page = await browser.newPage({ viewport: { width: 1_200, height: 900 }, ...options });
  onTestFinished(() => page.close());
  const [errors, sent]: [unknown[], unknown[]] = [[], []];
  page.on("pageerror", (error) => errors.push(error));
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/ai-sdk/chat"))
      sent.push(request.postDataJSON());
  });
  onTestFinished(() => expect(errors).toEqual([]));
  await page.goto(`${url}${path}`);
  return { page, sent };
}

const button = (page: Page, name: string | RegExp) =>
  page.getByRole("button", { name, exact: typeof name === "string" });
const answerOf = (page: Page) => page.locator("article.assistant").last();
/** Once the agent has nothing more to say. */
const isReady = (page: Page) => button(page, "Send").waitFor();

async function say(page: Page, ...lines: readonly string[]): Promise<void> {
  await page.getByLabel("Message").fill(lines.join("\n"));
  await page.keyboard.press("Enter");
}

/** A pixel, as a PNG. */
const dot =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** In a page: how wide it is, and how bright its text and its background are. */
const look = `(() => {
  const { color, backgroundColor } = getComputedStyle(document.body);
  const brightness = (text) => text.match(/\\d+/g).reduce((sum, part) => sum + Number(part), 0);
  const width = document.documentElement.scrollWidth;
  return { width, ink: brightness(color), paper: brightness(backgroundColor) };
})()`;
type Look = Readonly<Record<"width" | "ink" | "paper", number>>;

describe("the chat of examples/chat, with useChat", () => {
  it("calls tools, asks for a seat and for leave, and sends no more than its user's answers", async () => {
    const { page, sent } = await open();
    await button(page, /Book a train/).click();
    await button(page, "Seat 12A").click();
    await button(page, "Allow").waitFor();
    await isReady(page);
    const { AMBIT_SCREENSHOT: screenshot } = process.env;
    if (screenshot !== undefined) await page.screenshot({ path: screenshot });
    await button(page, "Allow").click();
    await answerOf(page).getByText("Have a good journey!").waitFor();
    await isReady(page);
    const calls = await answerOf(page)
      .locator("section.call")
      .evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
    expect(calls).toEqual(["find_trains: done", "choose_seat: done", "book_train: done"]);
    expect(await page.locator("article").count()).toBe(2);
    expect(sent).toHaveLength(3);
  });

  it("shows what a policy denies, what its user denies, a failure and a refusal", async () => {
    const { page } = await open();
    await button(page, /Break a rule/).click();
    await answerOf(page).getByLabel("delete_bookings: denied").waitFor();
    await isReady(page);
    await say(page, 'call book_train {"train": "IC 1", "euros": 38}');
    await button(page, "Deny").click();
    await answerOf(page).getByLabel("book_train: denied").waitFor();
    await isReady(page);
    await say(page, "fail for a reason");
    expect(await page.getByRole("alert").textContent()).toMatch(/^The agent failed. Try again./);
    const ambit = { sandboxPermission: { network: { mode: "sometimes" } } };
    await page.route("**/ai-sdk/chat", (route) => {
      const body: object = route.request().postDataJSON();
      return route.continue({ postData: JSON.stringify({ ...body, ambit }) });
    });
    await say(page, "say refused");
    await page.getByRole("alert").getByText("sandboxPermission.network").waitFor();
  });

  it("goes on with its message after a reload in mid-stream, and is stopped", async () => {
    const { page, sent } = await open();
    await say(page, "say One.", "hang");
    await answerOf(page).getByText("One.").waitFor();
    await page.reload();
    await button(page, "Stop").waitFor();
    await answerOf(page).getByText("One.").waitFor();
    await button(page, "Stop").click();
    await isReady(page);
    expect(await page.locator("article.assistant").count()).toBe(1);
    expect(sent).toHaveLength(1);
    await button(page, "New chat").click();
    expect(await page.locator("article").count()).toBe(0);
  });

  it("shows an image that the agent has drawn", async () => {
    const { page } = await open();
    await say(page, `run printf ${dot} | base64 -d > dot.png`);
    await isReady(page);
    const width = `document.querySelector("article.assistant img")?.naturalWidth`;
    await expect.poll(() => page.evaluate<number>(width)).toBe(1);
  });

  it.each(["light", "dark"] as const)("fits a phone, and is readable when it is %s", async (colorScheme) => {
    const { page } = await open({ viewport: { width: 360, height: 740 }, colorScheme });
    await say(page, `call find_trains {"from": "${"x".repeat(200)}", "to": "Zurich"}`);
    await answerOf(page).getByLabel("find_trains: done").waitFor();
    const { width, ink, paper } = await page.evaluate<Look>(look);
    expect(width).toBe(360);
    expect(Math.abs(ink - paper)).toBeGreaterThan(400);
    expect(ink < paper).toBe(colorScheme === "light");
  });
});

describe("assistant-ui's runtime", () => {
  let program = "";
  beforeAll(async () => {
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL("assistant-ui.tsx", import.meta.url))],
      bundle: true,
      write: false,
      jsx: "automatic",
      format: "esm",
      define: { "process.env.NODE_ENV": '"production"' },
      logLevel: "error",
    });
    program = outputFiles[0]?.text ?? "";
  });

  /** @param ambit what the page sends beside its messages */
  async function openThread(ambit?: object): Promise<Opened> {
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    const sent: unknown[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/ai-sdk/chat")) sent.push(request.url());
    });
    await page.addInitScript((value) => Object.assign(globalThis, { ambit: value }), ambit);
    await page.route("**/assistant-ui", (route) =>
      route.fulfill({
        contentType: "text/html",
        body: '<div id="root"></div><script type="module" src="/page.js"></script>',
      }),
    );
    await page.route("**/page.js", (route) =>
      route.fulfill({ contentType: "text/javascript", body: program }),
    );
    await page.goto(`${url}assistant-ui`);
    return { page, sent };
  }

  async function send(page: Page, ...lines: readonly string[]): Promise<void> {
    await page.getByLabel("Message").fill(lines.join("\n"));
    await button(page, "Send").click();
  }

  it("shows texts and calls, asks for a seat and for leave, and goes on after each answer", async () => {
    const { page, sent } = await openThread();
    const book = 'call book_train {"train": "IC 1", "euros": 38}';
    await send(page, "say before", 'call choose_seat {"train": "IC 1"}', book, "say after");
    await button(page, "Seat 12A").click();
    await button(page, "Allow").click();
    await page.getByText("after", { exact: true }).waitFor();
    expect(await page.getByLabel("choose_seat").textContent()).toContain('complete {"seat":"12A"}');
    expect(await page.getByLabel("book_train").textContent()).toContain('complete {"booked":"IC 1"');
    expect(sent).toHaveLength(3);
    await send(page, book, "say then not");
    await button(page, "Deny").click();
    await page.getByText("then not", { exact: true }).waitFor();
    expect(await page.getByLabel("book_train").last().textContent()).not.toContain("booked");
  });

  it("stops an answer, and shows a failure and a refusal", async () => {
    const { page } = await openThread();
    await send(page, "say One.", "hang");
    await page.getByText("One.", { exact: true }).waitFor();
    await button(page, "Stop").click();
    // The next message takes the place of the run that was left.
    await send(page, "say Two.");
    await page.getByText("Two.", { exact: true }).waitFor();
    await send(page, "fail for a reason");
    await page.getByText("The agent failed.").waitFor();
    const refused = await openThread({ sandboxPermission: { network: { mode: "sometimes" } } });
    await send(refused.page, "say Three.");
    await refused.page.getByText("sandboxPermission.network").waitFor();
  });
});
