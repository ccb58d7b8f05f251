/**
 * A plugin that blocks its server's event loop after SIGUSR2: it creates the file `blocked`, and waits until it is removed. Like
 * work that somebody else made too large.
 */
import { existsSync, writeFileSync } from "node:fs";
import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

const never = new Int32Array(new SharedArrayBuffer(4));

export default definePlugin({
  name: "blocking",
  api: 1,
  config: z.strictObject({ file: z.string() }),
  register: (_registrar, { file }) => {
    process.on("SIGUSR2", () => {
      writeFileSync(file, "");
      while (existsSync(file)) Atomics.wait(never, 0, 0, 20);
    });
  },
});
