import { describe, expect, it } from "vitest";
import { chooseShell } from "../src/toolbox/process/shell.js";
import { output, useLoopback } from "./loopback.js";

// apps/daemon/pkg/common/get_shell.go
describe("the shell of commands", () => {
  it.each([
    ["/bin/sh\n/bin/bash\n/usr/bin/zsh\n", "/bin/bash", "/usr/bin/zsh"],
    ["/bin/bash\n/bin/zsh\n", undefined, "/bin/zsh"],
    ["/bin/bash\n#/usr/bin/zsh\n", undefined, "/bin/bash"],
    ["/usr/bin/bash\n", undefined, "/usr/bin/bash"],
    ["/bin/sh\n", "/bin/ash", "/bin/ash"],
    ["", undefined, "sh"],
  ])("of %j, with $SHELL %s, is %s", (listed, own, shell) => {
    expect(chooseShell(listed, own)).toBe(shell);
  });

  const fixture = useLoopback({ snapshots: { plain: { shells: ["/bin/sh"] }, usual: {} } });

  it.each([
    ["plain", /^$/],
    ["usual", /bash$/],
  ])("runs commands of the snapshot %s", async (snapshot, name) => {
    const sandbox = await fixture().daytona.create({ snapshot });
    expect(await output(sandbox, 'echo "$BASH"')).toMatch(name);
    await sandbox.delete();
  });
});
