import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => existsSync(path),
);

/** Why no browser can be started here; undefined where one can. */
export const noBrowser = executablePath === undefined ? "no Chromium: apt-get install chromium" : undefined;

/** Pages that one test looks at, each with what its browser complained of. */
export interface SeenPage {
  readonly page: Page;
  readonly complaints: string[];
}

export interface TestBrowser {
  /** A page of a profile of its own. */
  open(options?: {
    readonly theme?: "light" | "dark";
    readonly width?: number;
    readonly height?: number;
  }): Promise<SeenPage>;
  close(): Promise<void>;
}

export async function startBrowser(): Promise<TestBrowser> {
  const profile = await mkdtemp(join(tmpdir(), "ambit-console-browser-"));
  const browser: Browser = await chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    env: { ...process.env, HOME: profile },
    args: [
      ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ],
  });
  return {
    open: async ({ theme = "light", width = 1280, height = 800 } = {}) => {
      const context = await browser.newContext({ colorScheme: theme, viewport: { width, height } });
      context.setDefaultTimeout(60_000);
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on("pageerror", ({ message }) => void complaints.push(message));
      page.on("console", (message) => {
        if (message.type() === "error") complaints.push(message.text());
      });
      return { page, complaints };
    },
    close: async () => {
      await browser.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}
