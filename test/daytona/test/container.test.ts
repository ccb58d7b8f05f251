import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { output, useLoopback } from "./loopback.js";

describe("a container", () => {
  const folder = mkdtempSync(join(tmpdir(), "ambit-image-"));
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, "agent.txt"), "in the image");
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const fixture = useLoopback({
    snapshots: {
      ambit: { user: "root" },
      agents: { user: "daytona", binds: { [folder]: "/opt/agents" }, env: { FROM_IMAGE: "yes" } },
      small: { memory: 4, disk: 1 },
      narrow: { memory: 1, disk: 1 },
      unprivileged: { privileged: false },
    },
  });
  const create = (snapshot: string) => fixture().daytona.create({ snapshot });

  it("sees no process, file or variable of this machine", async () => {
    const sandbox = await create("ambit");
    process.env.LOOPBACK_CANARY = "seen";
    expect(await output(sandbox, "printenv LOOPBACK_CANARY || echo unseen")).toBe("unseen");
    delete process.env.LOOPBACK_CANARY;
    expect(await output(sandbox, `kill -0 ${process.pid} 2>/dev/null && echo seen || echo unseen`)).toBe(
      "unseen",
    );
    expect(await output(sandbox, `cat ${folder}/agent.txt 2>/dev/null || echo unseen`)).toBe("unseen");
    expect(
      await output(sandbox, "touch /usr/x 2>/dev/null || echo read-only; touch /var/x && echo writable"),
    ).toBe("read-only\nwritable");
    const pid =
      fixture()
        .loopback.sandboxes()
        .find(({ id }) => id === sandbox.id)?.pid ?? 0;
    expect(() => process.kill(pid, 0)).not.toThrow();
  });

  it("lets root create users, and mount a /proc that hides processes", async () => {
    const sandbox = await create("ambit");
    const command = `useradd -m guest && chmod 700 /root && setpriv --reuid guest --regid guest --clear-groups sh -c 'id -un; ls /root 2>&1 | grep -o denied'
      mount -t proc -o hidepid=2 proc /proc && setpriv --reuid guest --regid guest --clear-groups ps -e --no-headers | grep -c node`;
    expect(await output(sandbox, command)).toBe("guest\ndenied\n0");
  });

  // apps/runner/pkg/docker/container_configs.go: privileged, unless it has a GPU.
  it.each([
    ["ambit", "rules: yes, mounts: yes"],
    ["unprivileged", "rules: no, mounts: no"],
  ])("gives root what a container of the snapshot %s has", async (snapshot, rights) => {
    const sandbox = await create(snapshot);
    const rules = "nft add table inet trial 2>/dev/null && echo yes || echo no";
    const mounts = "mount -t tmpfs none /mnt 2>/dev/null && echo yes || echo no";
    expect(await output(sandbox, `echo "rules: $(${rules}), mounts: $(${mounts})"`)).toBe(rights);
  });

  // apps/daemon/cmd/daemon/main.go: on every address, without authentication.
  it("lets every process inside use the daemon", async () => {
    const sandbox = await create("ambit");
    const order = `node -e 'fetch("http://[::1]:2280/process/execute", { method: "POST", body: JSON.stringify({ command: "id -un" }) })
      .then((answer) => answer.json()).then(({ result }) => process.stdout.write(result))'`;
    expect(await output(sandbox, `setpriv --reuid 1000 --regid 1000 --clear-groups ${order}`)).toBe("root");
    const ports = "22220 22222 33333";
    const reach = `for port in ${ports}; do (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && echo $port; done`;
    expect(await output(sandbox, reach)).toBe(ports.replaceAll(" ", "\n"));
  });

  it("of another image runs as daytona, without privileges, with the image's content", async () => {
    const sandbox = await create("agents");
    expect(await output(sandbox, "id -un; pwd; cat /opt/agents/agent.txt; echo; printenv FROM_IMAGE")).toBe(
      "daytona\n/home/daytona\nin the image\nyes",
    );
    expect(
      await output(
        sandbox,
        "touch /opt/agents/x 2>&1 | grep -o 'Read-only'; command -v sudo || echo no sudo",
      ),
    ).toBe("Read-only\nno sudo");
    expect(
      await output(sandbox, "grep CapEff /proc/self/status; cat /etc/shadow 2>&1 | grep -o denied"),
    ).toBe("CapEff:\t0000000000000000\ndenied");
  });

  it("can use its disk, and no more", async () => {
    const sandbox = await create("small");
    expect(
      await output(
        sandbox,
        "fallocate -l 900M /f && echo fits; fallocate -l 900M /g 2>&1 | grep -o 'No space'; rm -f /f /g",
      ),
    ).toBe("fits\nNo space");
  });

  it("can use its memory, and no more", async (context) => {
    const { limits } = fixture().loopback;
    if (!limits.includes("memory")) context.skip(`host: no memory cgroup is available (${limits.join()})`);
    const sandbox = await create("narrow");
    const use = (megabytes: number) =>
      output(sandbox, `python3 -c "b=bytearray(${megabytes}<<20); print('had')" 2>/dev/null; echo $?`);
    expect(await use(200)).toBe("had\n0");
    expect(await use(1500)).toMatch(/^137$/m);
  });
});
