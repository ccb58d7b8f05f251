import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { firewalls } from "../src/guest/supervisor.js";

const trial = fileURLToPath(new URL("support/firewall-trial.mjs", import.meta.url));

describe("ports of a service inside", () => {
  for (const { name, commands } of firewalls) {
    it(`can be reached only by root behind ${name}`, { timeout: 60_000 }, (context) => {
      if (process.getuid?.() !== 0) context.skip("host: rules take root");
      const orders = commands([2_280, 22_220]);
      for (const { program } of orders) {
        const { error } = spawnSync(program, ["--version"]);
        if (error !== undefined) context.skip(`host: ${program} isn't installed`);
      }
      const argv = ["--net", process.execPath, trial, JSON.stringify(orders)];
      const { stdout, stderr } = spawnSync("unshare", argv, { encoding: "utf8" });
      expect(stdout, stderr).toBe(
        "61000 obeyed obeyed obeyed\n61000 refused refused refused\n0 obeyed obeyed obeyed\n",
      );
    });
  }
});
