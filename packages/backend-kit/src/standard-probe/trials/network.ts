import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import { expectThat, NotProven } from "@ambit/backend-kit";
import type { Attempts, Bench, Reached, Trial } from "./bench.js";
import { lookInside, lookProgram, readLook } from "./bench.js";
import { secretTrial } from "./secrets.js";

/** The same attempts as a plain process of this host. */
async function lookOutside({ signal }: Bench, attempts: Attempts): Promise<Reached> {
  const [program, ...rest] = await lookProgram(process.execPath, attempts);
  return readLook((await promisify(execFile)(program, rest, { signal })).stdout);
}

const reachedOf = (seen: Reached) =>
  Object.entries(seen)
    .filter(([, what]) => what !== null)
    .map(([id, what]) => `${id} (${what?.slice(0, 60)})`)
    .join(", ");

const network: Trial = {
  shows: ["network.deny"],
  async run(bench) {
    const { closed, decoys } = bench;
    const hosts = decoys.addresses.map((host) => [
      `connect ${host}`,
      { try: "connect", host, port: decoys.otherPort },
    ]);
    const attempts: Attempts = { ...Object.fromEntries(hosts), links: { try: "links" } };
    const control = await lookOutside(bench, attempts);
    expectThat(
      Object.values(control).some((what) => what !== null),
      "nothing of this host answers a plain process",
    );
    const more: Attempts = { ...attempts, "a name": { try: "resolve", host: "example.com" } };
    const seen = await lookInside(closed, bench, more);
    expectThat(reachedOf(seen) === "", `reached in a container without a network: ${reachedOf(seen)}`);
    const { filter, kernel } = await lookInside(closed, bench, {
      filter: { try: "status", field: "Seccomp" },
      kernel: { try: "kernel" },
    });
    const isGvisor = kernel?.includes("PST 2016") === true;
    expectThat(
      filter === "2" || isGvisor,
      "no filter of system calls holds inside, so vsock and io_uring are open",
    );
    const by = isGvisor ? "gVisor's own kernel" : "a filter of system calls";
    return {
      "network.deny": `this host answered a plain process, and nothing answered in a container: no link but lo, no name; ${by} refuses other families`,
    };
  },
};

const lists: Trial = {
  shows: ["network.allow-cidr", "network.allow-host"],
  async run(bench) {
    const { listed, decoys } = bench;
    const { host, listedPort, otherPort, secret: says } = decoys;
    const seen = await lookInside(listed, bench, {
      address: { try: "proxied", host, port: listedPort, says },
      name: { try: "proxied", host: "localhost", port: listedPort, says },
      "its neighbour": { try: "proxied", host, port: otherPort, says },
      "another name": { try: "proxied", host: "localhost.example.com", port: listedPort, says },
      directly: { try: "connect", host, port: listedPort },
      links: { try: "links" },
    });
    const { address, name, ...rest } = seen;
    expectThat(address === says && name === says, "what is listed didn't answer through the runner's proxy");
    expectThat(reachedOf(rest) === "", `reached although it isn't listed: ${reachedOf(rest)}`);
    const how = "answered through the runner's proxy; what isn't listed, and every direct way, was refused";
    return { "network.allow-cidr": `a listed address ${how}`, "network.allow-host": `a listed name ${how}` };
  },
};

const files: Trial = {
  shows: ["filesystem.workspace-only", "filesystem.read-only", "filesystem.none", "filesystem.host-hidden"],
  async run(bench) {
    const { closed, listed, empty, decoys } = bench;
    const outside: Attempts = {
      file: { try: "read", path: decoys.file },
      put: { try: "write", path: `${decoys.folder}/put` },
    };
    const control = await lookOutside(bench, outside);
    expectThat(
      control.file === decoys.secret && control.put !== null,
      "a plain process can't read the decoy either",
    );
    const system = ["/etc/put", "/usr/put", "/put", `${bench.config.bridge.folder}/put`].map((path) => [
      path,
      { try: "write", path },
    ]);
    const tried: Attempts = {
      ...outside,
      shadow: { try: "read", path: "/etc/shadow" },
      ...Object.fromEntries(system),
    };
    for (const sandbox of [closed, listed, empty]) {
      const seen = await lookInside(sandbox, bench, tried);
      expectThat(reachedOf(seen) === "", `reached outside the workspace: ${reachedOf(seen)}`);
    }
    const given = (workspace: string): Attempts => ({
      write: { try: "write", path: `${workspace}/put` },
      read: { try: "read", path: `${workspace}/given` },
      list: { try: "list", path: workspace },
    });
    const seen: Reached[] = [];
    for (const sandbox of [closed, listed, empty]) {
      await sandbox.writeFiles([{ path: `${sandbox.workspace}/given`, content: "given" }]);
      seen.push(await lookInside(sandbox, bench, given(sandbox.workspace)));
    }
    const [writable, readable, none] = seen;
    expectThat(
      writable?.write != null && writable.read === "given",
      "the workspace can't be written and read",
    );
    expectThat(
      readable?.write === null && readable.read === "given",
      "a read-only workspace can be written, or not read",
    );
    expectThat(
      none !== undefined && reachedOf(none) === "",
      "the workspace is there although it was to be none",
    );
    const rest = "a file that every user of this host may read, and write beside, wasn't there inside";
    return {
      "filesystem.host-hidden": rest,
      "filesystem.workspace-only": `a write in the workspace arrived, all others failed; ${rest}`,
      "filesystem.read-only": `a file of the workspace was read, and no write succeeded; ${rest}`,
      "filesystem.none": `neither a file nor a list of the workspace was read; ${rest}`,
    };
  },
};

const processes: Trial = {
  shows: ["process.contained", "environment.per-tool"],
  async run(bench) {
    const { closed, empty, signal } = bench;
    const text = `decoy-${randomUUID()}`;
    const command = {
      argv: [bench.config.bridge.node, "-e", "console.log('up');setTimeout(() => {}, 60000)", text],
      env: { PATH: closed.facts.searchPath, DECOY: text },
      signal,
    } as const;
    const decoy = await closed.spawn(command);
    try {
      await decoy.stdout.getReader().read();
      const find: Attempts = {
        arguments: { try: "arguments", text },
        environment: { try: "environment", text },
      };
      const own = await lookInside(
        closed,
        bench,
        { own: { try: "ownEnvironment", text } },
        { env: { OWN: text } },
      );
      expectThat(own.own !== null, "a process doesn't see its own environment in /proc, so nothing is shown");
      const near = reachedOf(await lookInside(closed, bench, find));
      const agent = reachedOf(await lookInside(closed, bench, find, { role: "agent" }));
      const far = reachedOf(await lookInside(empty, bench, find));
      const host = { arguments: { try: "arguments", text: `${process.argv[1]}` } };
      expectThat(
        far === "" && reachedOf(await lookInside(closed, bench, host)) === "",
        "a process of another container, or of this host, is seen",
      );
      const { ownUsers, whyShared } = closed.facts;
      const isApart = ownUsers && near === "" && agent === "";
      const seen = near === "" ? agent : near;
      return {
        "process.contained": "a process was seen in no other container, and the runner's in none",
        "environment.per-tool": isApart
          ? "a process read its own environment in /proc; neither a tool nor the agent beside it found it, or its arguments"
          : new NotProven(
              `a process beside it sees ${seen || "it"}: ${whyShared ?? "users aren't kept apart"}`,
              perToolFix,
            ),
      };
    } finally {
      await decoy.kill();
    }
  },
};

const perToolFix =
  "use an image with `mount` and `setpriv` (util-linux), and the runtime runc: gVisor keeps arguments from no user";

const named: Trial = {
  shows: ["environment.named-only"],
  async run(bench) {
    const { decoys, closed } = bench;
    const attempts: Attempts = { names: { try: "names" } };
    const control = await lookOutside(bench, attempts);
    expectThat(
      control.names?.includes(decoys.variable) === true,
      "a plain process doesn't inherit the decoy either",
    );
    const seen = await lookInside(closed, bench, attempts, { env: { AMBIT_NAMED: "1" } });
    const others = (seen.names ?? "").split(",").filter((name) => !expected.has(name));
    expectThat(others.length === 0, `variables that the process wasn't given: ${others.join(", ")}`);
    return {
      "environment.named-only":
        "a variable of the runner was inherited by a plain process; inside were only those named",
    };
  },
};
const expected = new Set(["AMBIT_NAMED", "HOME", "PATH", "TMPDIR"]);

export const trials: readonly Trial[] = [network, lists, files, processes, named, secretTrial];
