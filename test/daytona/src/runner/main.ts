/** A runner's process. Its parent controls it, and it ends with its parent. */
import { rm } from "node:fs/promises";
import { numberedCall, type Report, setup } from "./messages.js";
import { Runner } from "./runner.js";

const say = (report: Report) => {
  if (process.connected) process.send?.(report);
};

// The sandboxes' users must be able to read what it creates for them.
process.umask(0o022);

const message = await new Promise<unknown>((resolve) => process.once("message", resolve));
const settings = setup.parse(message);

let runner: Runner | undefined;

/** The parent ended without closing: removes what the parent would have removed. */
process.once("disconnect", async () => {
  try {
    await runner?.close();
    await rm(settings.folder, { recursive: true, force: true });
  } finally {
    // Its namespaces, and every container in them, end with this process.
    process.exit();
  }
});

const started = await Runner.create(settings, say);
runner = started;

process.on("message", async (raw) => {
  const { number, call } = numberedCall.parse(raw);
  try {
    const pid = await started.do(call);
    say({ report: "done", number, ...(pid === undefined ? {} : { pid }) });
  } catch (error) {
    say({ report: "failed", number, message: error instanceof Error ? error.message : String(error) });
  }
});
say({ report: "ready", limits: [...started.limits] });
