import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { SandboxFailed } from "@ambit/core/plugin";

const path = fileURLToPath(new URL("../guest-daemon.cjs", import.meta.url));

let text: Promise<Buffer> | undefined;

/** The guest daemon as one file without dependencies. Read once. @throws SandboxFailed when it wasn't bundled. */
export function guestDaemon(): Promise<Buffer> {
  text ??= readFile(path).catch((error: unknown) => {
    throw new SandboxFailed("The bridge's guest daemon isn't built: run `npm run build`", { cause: error });
  });
  return text;
}
