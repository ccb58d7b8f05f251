/** A runner's process: told by its parent what to do, and gone with it. */
import { rm } from "node:fs/promises";
import { numberedCall, type Report, setup } from "./messages.js";
import { Runner } from "./runner.js";

const say = (report: Report) => {
  if (process.connected) process.send?.(report);
};

// What it makes for its sandboxes is read by their users.
process.umask(0o022);

const message = await new Promise<unknown>((resolve) => process.once("message", resolve));
const settings = setup.parse(message);

let runner: Runner | undefined;

/** The parent is gone without having closed: what it would have removed is removed here. */
process.once("disconnect", async () => {
  try {
    await runner?.close();
    await rm(settings.folder, { recursive: true, force: true });
  } finally {
    // With this process go its namespaces, and every container in them.
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
