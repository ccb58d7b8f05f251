import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import type { Role } from "../../http/console/session.js";
import { exitCodes } from "../exit-codes.js";
import { type ClientOptions, CommandRefused, connect, isMissing } from "../server-client.js";

export interface ConsoleOptions extends ClientOptions {
  readonly role?: Role;
  /** The name of the person. */
  readonly user?: string;
  /** Whether a browser is opened, at a terminal. */
  readonly open: boolean;
}

/** Milliseconds that a browser gets to read the file that leads to the link. */
const openingMs = 10_000;

/** `ambit console`: prints a link that signs in once, and opens it at a terminal. */
export async function openConsole({ role, user, open, ...options }: ConsoleOptions): Promise<number> {
  const link = await connect(options)
    .signInLink({ role, user })
    .catch((error: unknown) => {
      if (isMissing(error))
        throw new CommandRefused("this server serves no console: start it with `ambit serve --console`");
      throw error;
    });
  process.stdout.write(`${link}\n`);
  if (open && process.stdout.isTTY) await openInBrowser(link);
  return exitCodes.ok;
}

/** Opens the link by a file that only this user can read: every user sees the arguments of a program. */
async function openInBrowser(link: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-console-"));
  const file = join(folder, "sign-in.html");
  try {
    await writeFile(file, `<!doctype html><meta http-equiv="refresh" content="0;url=${link}">`, {
      mode: 0o600,
    });
    const program = process.platform === "darwin" ? "open" : "xdg-open";
    const { failed } = await execa(program, [file], { reject: false, stdio: "ignore", timeout: openingMs });
    // The browser reads it after the program has ended.
    if (!failed) await new Promise((resolve) => setTimeout(resolve, 2_000));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
