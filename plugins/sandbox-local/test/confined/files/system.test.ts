// needs: jail
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeEtc } from "../../../src/confined/jail-setup.js";
import { openConfined, run, shell, temporaryFolder } from "../../support/specs.js";

test("the replacement for /etc holds what packages need, and no passwords of a mirror", async (context) => {
  const etc = await makeEtc(await temporaryFolder(), process.execPath);
  expect(await readFile(join(etc.folder, "machine-id"), "utf8")).toMatch(/^[0-9a-f]{32}\n$/);
  if (!existsSync("/etc/maven/settings.xml")) return context.skip("host: no Maven settings in /etc");
  expect(existsSync(join(etc.folder, "maven", "m2.conf"))).toBe(true);
  expect(existsSync(join(etc.folder, "maven", "settings.xml"))).toBe(false);
});

test("a program finds its user, an existing home, shared scratch and the processors", async () => {
  const sandbox = await openConfined();
  const script = `
    echo "$USER $LOGNAME $(whoami)"
    home=$(getent passwd agent | cut -d: -f6); [ "$home" = "$HOME" ] && touch "$home/mine" && echo "$home"
    stat -c %a /tmp /dev/shm
    ls /sys/devices/system/cpu | grep -c '^cpu0$'
    touch /sys/devices/system/cpu/mine 2>/dev/null || echo read-only`;
  for (const [role, home] of [
    ["agent", "/home/agent"],
    ["tool", "/home/tool"],
  ] as const) {
    const { stdout } = await run(sandbox, shell(script), role === "agent" ? { role } : {});
    expect(stdout.trim().split("\n")).toEqual(["agent agent agent", home, "1777", "1777", "1", "read-only"]);
  }
});
