import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { onTestFinished } from "vitest";

const programs = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const program = programs.find((path) => existsSync(path));

/** Why there is no browser here; undefined if there is one. */
export const noBrowser =
  program === undefined ? "Chromium isn't installed: apt-get install chromium" : undefined;

/** It asks no other host than this one, for itself or a page. The caller closes it. */
export async function startBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: program,
    // Root can't use its own sandbox.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [
      "--disable-gpu",
      "--disable-quic",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1",
    ],
  });
}

/** The same for one test, which closes it. */
export async function openBrowser(): Promise<Browser> {
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  return browser;
}
