import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { AmbitClient } from "@ambit/client";
import { execa } from "execa";
import type { Page } from "playwright-core";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { emptyFolder, repository, type Server, serve } from "../support/ambit.js";
import { noBrowser, openBrowser } from "../support/browser.js";
import { writePageCode } from "../support/page-code.js";

const token = "the-operators-own-token";
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-browsers-"));
  expect(await writePageCode("docs/browsers.md", "browsers", folder)).toBe(2);
  await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  const compilerOptions = {
    module: "nodenext",
    target: "es2023",
    types: ["node"],
    strict: true,
    outDir: "dist",
  };
  const tsconfig = { compilerOptions: { ...compilerOptions, rootDir: "browsers", skipLibCheck: true } };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ ...tsconfig, include: ["browsers"] }));
  for (const name of ["route", "direct"])
    expect(linesOf(await readFile(join(folder, `browsers/${name}.ts`), "utf8")), name).toBeLessThanOrEqual(
      40,
    );
  await execa(process.execPath, [join(repository, "node_modules/typescript/bin/tsc"), "-p", folder]);
  return () => rm(folder, { recursive: true, force: true });
}, 120_000);

/** Without the one that names the file. */
const linesOf = (code: string) => code.trimEnd().split("\n").length - 1;

/** Starts a program of the page. @returns where it listens */
async function start(name: string, { url }: Server): Promise<number> {
  const child: ChildProcess = spawn(process.execPath, [join(folder, `dist/${name}.js`)], {
    env: { AMBIT_URL: url, AMBIT_TOKEN: token, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  if (child.stdout === null) throw new Error("it has no output");
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return Number(line);
}

/** A second port for a page, whose origin is known before the page is served. */
async function reservedPort() {
  let target = 0;
  const listener = createServer((socket) => {
    const onward = connect(target, "127.0.0.1");
    socket.pipe(onward).pipe(socket);
    for (const end of [socket, onward])
      end.on("error", () => void [socket, onward].map((one) => one.destroy()));
  });
  await once(listener.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void listener.close());
  const { port }: Pick<AddressInfo, "port"> = Object(listener.address());
  const leadTo = (to: number) => {
    target = to;
  };
  return { origin: `http://127.0.0.1:${port}`, leadTo };
}

async function serveFor(origins: readonly string[]): Promise<Server> {
  const home = await emptyFolder();
  const file = join(home, "ambit.config.json");
  await writeFile(
    file,
    JSON.stringify({ extends: "defaults", server: { origins }, probes: { keepAcrossRestarts: true } }),
  );
  // Both programs have one session.
  return serve({ AMBIT_TOKEN: token, AMBIT_SQLITE_FILE: join(home, "runs.sqlite") }, ["--config", file]);
}

const dot =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** What a page says of its calls: of a stream that it reads by fetch, of the question by an EventSource, and of an image. */
const calling = `async ({ url, runner, reader, runId, image }) => {
  const headers = { authorization: "Bearer " + runner };
  const body = JSON.stringify({ messages: [{ role: "user", content: "say streamed" }] });
  const streamed = await fetch(url + "/stream", { method: "POST", headers, body }).then(
    async (response) => ({ id: response.headers.get("x-ambit-run-id"), text: await response.text() }),
    () => "refused",
  );
  const followed = await new Promise((resolve) => {
    const source = new EventSource(url + "/runs/" + runId + "/events?token=" + reader);
    source.onerror = () => { source.close(); resolve("refused"); };
    source.onmessage = ({ data }) => { if (data.includes('"kind":"result"')) { source.close(); resolve(data); } };
  });
  const shown = await new Promise((resolve) => {
    const element = new Image();
    element.onload = () => resolve(element.naturalWidth);
    element.onerror = () => resolve("refused");
    element.src = image;
  });
  return { streamed, followed, shown };
}`;

it("answers a page by its platform's own route", { timeout: 180_000 }, async () => {
  const port = await start("route", await serveFor([]));
  const response = await fetch(`http://127.0.0.1:${port}/chat`, { method: "POST", body: "say by the route" });
  expect(await response.text()).toContain("by the route");
});

it("answers a page of a listed origin directly, and none of another", {
  timeout: 180_000,
}, async (context) => {
  if (noBrowser !== undefined) context.skip(`host: ${noBrowser}`);
  const listed = await reservedPort();
  const server = await serveFor([listed.origin]);
  const port = await start("direct", server);
  listed.leadTo(port);
  const browser = await openBrowser();
  const page = await (await browser.newContext()).newPage();
  await page.goto(listed.origin);
  await page.locator("input").fill(`run printf ${dot} | base64 -d > dot.png`);
  await page.locator("input").press("Enter");
  const client = new AmbitClient({ url: server.url, token });
  const filesOf = async () => {
    const [run] = (await client.runs({ state: "ended" })).runs;
    if (run === undefined) return [];
    return (await client.files(run.runId, { urlTtlMs: 60_000 })).files.map(({ url }) => ({
      url,
      runId: run.runId,
    }));
  };
  await expect.poll(filesOf, { timeout: 120_000 }).toHaveLength(1);
  const [{ url: path = "", runId } = {}] = await filesOf();
  await page.locator("input").fill("say shown to the user");
  await page.locator("input").press("Enter");
  await page.locator("pre").filter({ hasText: "shown to the user" }).waitFor({ timeout: 120_000 });

  const made = async (sessionId: string, more: object) =>
    (await client.makeToken({ sessionId, may: ["read"], ...more })).token;
  const given = {
    url: server.url,
    reader: await made("a-session-of-this-user", {}),
    // The page's own run may not have ended yet.
    runner: await made("another-session", { may: ["run"], request: { harness: "demo" } }),
    runId,
    image: `${server.url}${path}`,
  };
  const call = (from: Page) => from.evaluate(`(${calling})(${JSON.stringify(given)})`);
  expect(await call(page)).toEqual({
    streamed: { id: expect.stringMatching(/./), text: expect.stringContaining("streamed") },
    followed: expect.stringContaining('"kind":"result"'),
    shown: 1,
  });

  // The same page at its other port, which isn't listed. An image isn't read by the page that shows it.
  const foreign = await (await browser.newContext()).newPage();
  await foreign.goto(`http://127.0.0.1:${port}`);
  expect(await call(foreign)).toMatchObject({ streamed: "refused", followed: "refused" });

  // Its URL opens this file and nothing else.
  const file = await fetch(given.image);
  expect([file.status, Object.fromEntries(file.headers)]).toMatchObject([
    200,
    {
      "content-disposition": "attachment",
      "content-security-policy": "sandbox",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    },
  ]);
  for (const other of ["/files/dot.png/../other.png", "/files", "/events", ""])
    expect((await fetch(given.image.replace("/files/dot.png", other))).status, other).toBe(403);
  expect((await fetch(given.image.replace(String(runId), "another-run"))).status).toBe(404);

  // What the agent wrote becomes no page of the server's origin: a link downloads it.
  const download = page.waitForEvent("download");
  await page.evaluate(`location.href = ${JSON.stringify(server.url + path)}`);
  expect((await download).suggestedFilename()).toBe("dot.png");
  expect(server.log()).not.toMatch(/page_/);
});
