import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { demo, type Server } from "../support/ambit.js";
import { noBrowser, openBrowser } from "../support/browser.js";
import { packedProgram } from "./packed-program.js";
import { servePreviews } from "./servers.js";

const pageFiles = [
  {
    path: "index.html",
    content: "<!doctype html><div id=said></div><script type=module src=/main.js></script>",
  },
  {
    path: "main.js",
    content: `import { word } from "./word.js";
const said = document.querySelector("#said");
said.textContent = word;
import.meta.hot.accept("./word.js", (changed) => { said.textContent = changed.word; });
`,
  },
  { path: "word.js", content: 'export const word = "one";\n' },
];

const development = "node node_modules/vite/bin/vite.js --port 5173 --strictPort";

/** What every run of the session has: the agent, with the server that it started, stays. */
const session = {
  sessionId: "page",
  ports: [{ port: 5_173, name: "page" }],
  permissions: { default: "allow" },
  sandboxPermission: { network: "off", filesystem: "workspace" },
};

interface Result {
  readonly ok: boolean;
  readonly events: readonly { readonly name?: string; readonly data: { readonly url: string } }[];
}

async function run(server: Server, more: object): Promise<Result> {
  const result: Result = JSON.parse(await (await server.post("/run", { ...session, ...more })).text());
  expect(result, server.log()).toMatchObject({ ok: true });
  return result;
}

/** A page of another origin, on this machine as well. */
async function openForeignPage(page: Page): Promise<void> {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>another origin</title>");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const { port }: Pick<AddressInfo, "port"> = Object(server.address());
  await page.goto(`http://another.localhost:${port}/`);
}

/** Runs in a page. */
const reaching = `(async () => {
  const script = await new Promise((resolve) => {
    const element = document.createElement("script");
    element.type = "module";
    element.src = origin + "/word.js";
    element.onload = () => resolve("loaded");
    element.onerror = () => resolve("refused");
    document.head.append(element);
  });
  const socket = await new Promise((resolve) => {
    const opened = new WebSocket(origin.replace("http", "ws"), "vite-ping");
    opened.onopen = () => resolve("open");
    opened.onerror = () => resolve("refused");
  });
  return { script, socket };
})()`;

/** What of the preview a page can use. */
const reach = (page: Page, origin: string) =>
  page.evaluate(`{ const origin = ${JSON.stringify(origin)}; ${reaching} }`);

it("shows a development server's page in a real browser, with its changes, and to no other page", {
  timeout: 180_000,
}, async (context) => {
  if (noBrowser !== undefined) context.skip(`host: ${noBrowser}`);
  const server = await servePreviews({ port: 0 }, { workspace: { allowedRanges: ["127.0.0.1/32"] } });
  const first = await run(server, {
    workspace: { sources: [await packedProgram("vite"), { type: "files", files: pageFiles }] },
    ...demo(`run ${development} > server.log 2>&1 & until grep ready server.log; do sleep 0.2; done`),
  });
  const url = new URL(first.events.find(({ name }) => name === "preview")?.data.url ?? "about:blank");

  const browser = await openBrowser();
  const user = await browser.newContext();
  const page = await user.newPage();
  await page.goto(url.href);
  const said = page.locator("#said");
  await said.filter({ hasText: /^one$/ }).waitFor();
  expect(page.url()).toBe(`${url.origin}/`);
  expect(await page.evaluate("document.cookie")).toBe("");

  // The development server sends what the agent's next turn changes over its WebSocket: the page isn't loaded again.
  await page.evaluate('document.body.setAttribute("data-kept", "yes")');
  await run(server, demo('write word.js export const word = "two";\\n'));
  await said.filter({ hasText: /^two$/ }).waitFor();
  expect(await page.getAttribute("body", "data-kept")).toBe("yes");

  // The same user's browser, with the cookie. The control: the page itself reaches both.
  expect(await reach(page, url.origin)).toEqual({ script: "loaded", socket: "open" });
  const foreign = await user.newPage();
  await openForeignPage(foreign);
  expect(await reach(foreign, url.origin)).toEqual({ script: "refused", socket: "refused" });

  // Without the cookie, the address alone leads nowhere.
  const stranger = await (await browser.newContext()).newPage();
  expect((await stranger.goto(`${url.origin}/`))?.status()).toBe(403);

  await fetch(`${server.url}/sessions/${session.sessionId}`, { method: "DELETE" });
  expect((await page.goto(`${url.origin}/`))?.status()).toBe(404);
});
