// Runs in a sandbox, and as a plain process for the control. Its argument is JSON: {"<id>": {"try": "<what>", …}}.
// Prints JSON: {"<id>": "<what was reached>" | null}. Null: refused. Needs nothing but Node.js 18.
// Follows reach.cjs in one program, whose attempts it makes too.
"use strict";
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");

/** Milliseconds: what answers does so at once, except on a busy host. */
const limitMs = 10_000;

/** What a server says to these words, until it says what is wanted. */
function talk(target, first, wanted) {
  return new Promise((resolve, reject) => {
    let heard = "";
    const socket = net.connect({ ...target, timeout: limitMs });
    const end = () => {
      socket.destroy();
      resolve(heard === "" ? "connected" : heard.slice(0, 500));
    };
    // A server may wait for a request: with nothing to say, being connected is enough.
    socket.on("connect", () => (first === undefined ? end() : socket.write(first)));
    socket.on("data", (bytes) => {
      heard += bytes;
      if (wanted === undefined || heard.includes(wanted)) end();
    });
    socket.on("end", end);
    socket.on("timeout", () => (heard === "" ? reject(new Error("timeout")) : end()));
    socket.on("error", reject);
  });
}

/** The status of a proxy's answer to CONNECT. */
async function proxyStatus(host, port) {
  const proxy = new URL(process.env.HTTP_PROXY ?? "");
  const ask = `CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`;
  const answer = await talk({ host: proxy.hostname, port: Number(proxy.port) }, ask, "\r\n");
  return Number(/^HTTP\/1\.[01] (\d+)/.exec(answer)?.[1]);
}

/**
 * The first file below /proc, by its process, that holds a text; this process doesn't count. The text is given in halves: it is
 * also in the arguments of this process's parents.
 */
function inProcesses(file, halves) {
  const text = halves.join("");
  const found = fs.readdirSync("/proc").find((pid) => {
    try {
      if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
      return fs.readFileSync(`/proc/${pid}/${file}`, "utf8").includes(text);
    } catch {
      return false;
    }
  });
  return found === undefined ? null : `/proc/${found}/${file}`;
}

/** The first 64 KiB of a file; empty if it can't be read. */
function headOf(path) {
  try {
    const descriptor = fs.openSync(path, "r");
    try {
      const content = Buffer.alloc(65_536);
      return content.subarray(0, fs.readSync(descriptor, content, 0, content.length, 0)).toString("latin1");
    } finally {
      fs.closeSync(descriptor);
    }
  } catch {
    return "";
  }
}

/** A text, which is given in halves where it must not be in this program's arguments. */
/** What is in a folder besides some paths below it, and besides the folders that only lead to them. */
const namesBeside = (folder, shown) =>
  fs.readdirSync(folder).flatMap((name) => {
    const path = `${folder}/${name}`;
    if (shown.includes(path)) return [];
    return shown.some((other) => other.startsWith(`${path}/`)) ? namesBeside(path, shown) : [path];
  });
const textOf = ({ text, halves }) => text ?? halves.join("");

const attempts = {
  ...module.exports,
  /** With `says`: only if the server answers with it. */
  async connect({ host, port, says }) {
    if (says === undefined) return talk({ host, port });
    const answer = await talk({ host, port }, `GET / HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`, says);
    return answer.includes(says) ? says : null;
  },
  /** An abstract Unix socket. */
  local: ({ name }) => talk({ path: `\0${name}` }),
  /** Whether a proxy tries to connect: it answers neither with a refusal nor not at all. */
  async passed({ host, port }) {
    const status = await proxyStatus(host, port);
    return Number.isNaN(status) || (status >= 400 && status < 500) ? null : `${status}`;
  },
  async proxied({ host, port, says }) {
    const proxy = new URL(process.env.HTTP_PROXY ?? "");
    const ask = `CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`;
    const first = `${ask}GET / HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`;
    const answer = await talk({ host: proxy.hostname, port: Number(proxy.port) }, first, says);
    return answer.includes(says) ? says : null;
  },
  /** What a server answers that is sent a variable as a token, over TLS through the proxy. */
  send({ host, port, variable }) {
    const proxy = new URL(process.env.HTTP_PROXY ?? "");
    const connect = {
      host: proxy.hostname,
      port: proxy.port,
      method: "CONNECT",
      path: `${host}:${port}`,
      agent: false,
    };
    return new Promise((resolve, reject) => {
      const tunnel = require("node:http").request(connect);
      tunnel.setTimeout(limitMs, () => reject(new Error("timeout")));
      tunnel.once("error", reject);
      tunnel.once("connect", (_response, socket) => {
        let answer = "";
        const secure = require("node:tls").connect({ socket, servername: host }, () => {
          const head = `GET / HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n`;
          secure.write(`${head}Authorization: Bearer ${process.env[variable]}\r\n\r\n`);
        });
        secure.on("data", (bytes) => (answer += bytes));
        secure.once("error", (error) => resolve(`${answer} ${error.message}`));
        secure.once("close", () => resolve(answer));
      });
      tunnel.end();
    });
  },
  environments() {
    const all = fs.readdirSync("/proc").map((pid) => {
      try {
        return /^\d+$/.test(pid) ? fs.readFileSync(`/proc/${pid}/environ`, "latin1") : "";
      } catch {
        return "";
      }
    });
    return all.join(" ").slice(0, 100_000);
  },
  async resolve({ host }) {
    const late = new Promise((_, reject) => setTimeout(reject, limitMs).unref());
    return (await Promise.race([require("node:dns").promises.lookup(host), late])).address;
  },
  read: ({ path }) => fs.readFileSync(path, "utf8").slice(0, 200),
  write({ path }) {
    fs.writeFileSync(path, "written");
    return `wrote ${path}`;
  },
  remove({ path }) {
    fs.rmSync(path);
    return `removed ${path}`;
  },
  /** Whether it could be written to; it stays as it is. */
  openToWrite({ path }) {
    fs.closeSync(fs.openSync(path, "r+"));
    return `opened ${path}`;
  },
  /** A file of this name, at most two folders below something that is mounted. */
  belowMounts({ name }) {
    const mounts = fs
      .readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4]);
    const isSearched = (path) => path !== undefined && path !== "/" && !/^\/(proc|sys|dev)(\/|$)/.test(path);
    const entries = (folder) => {
      try {
        return fs
          .readdirSync(folder)
          .slice(0, 200)
          .map((entry) => `${folder}/${entry}`);
      } catch {
        return [];
      }
    };
    const near = mounts.filter(isSearched).slice(0, 200).flatMap(entries);
    const found = [...near, ...near.slice(0, 1_000).flatMap(entries)];
    return found.find((path) => path.endsWith(`/${name}`)) ?? null;
  },
  /** As writable. */
  remount({ path }) {
    const { status } = require("node:child_process").spawnSync("mount", ["-o", "remount,rw,bind", path]);
    return status === 0 ? `remounted ${path}` : null;
  },
  /** A file of scratch that holds a text. */
  scratch({ halves }) {
    const folders = [
      "/tmp",
      "/var/tmp",
      "/dev/shm",
      process.env.TMPDIR ?? "/tmp",
      process.env.HOME ?? "/tmp",
    ];
    const files = folders.flatMap((folder) => {
      try {
        return fs.readdirSync(folder).map((name) => `${folder}/${name}`);
      } catch {
        return [];
      }
    });
    const holds = (path) => {
      try {
        return fs.statSync(path).size < 1_000 && fs.readFileSync(path, "utf8").includes(halves.join(""));
      } catch {
        return false;
      }
    };
    return files.find(holds) ?? null;
  },
  /** A text that this process puts into its own scratch. */
  ownScratch({ text }) {
    fs.writeFileSync(`${process.env.TMPDIR ?? "/tmp"}/ambit-own-${process.pid}`, text);
    return attempts.scratch({ halves: [text] });
  },
  /** A file below the folders that holds a text. */
  holding({ folders, halves }) {
    const text = halves.join("");
    let left = 20_000;
    const below = (folder) => {
      let entries = [];
      try {
        entries = fs.readdirSync(folder, { withFileTypes: true });
      } catch {
        return null;
      }
      for (const entry of entries) {
        const path = `${folder}/${entry.name}`;
        if (entry.isFile()) left -= 1;
        if (entry.isFile() && left > 0 && headOf(path).includes(text)) return path;
        const found = entry.isDirectory() && left > 0 ? below(path) : null;
        if (found !== null) return found;
      }
      return null;
    };
    return folders.map(below).find((path) => path !== null) ?? null;
  },
  exists: ({ path }) => (fs.existsSync(path) ? path : null),
  list: ({ path, shown = [] }) =>
    shown.length === 0 ? fs.readdirSync(path).join() || "listed" : namesBeside(path, shown).join() || null,
  arguments: ({ halves }) => inProcesses("cmdline", halves),
  environment: ({ halves }) => inProcesses("environ", halves),
  ownEnvironment: (wanted) =>
    fs.readFileSync("/proc/self/environ", "utf8").includes(textOf(wanted)) ? "its environment" : null,
  /** A file about this process, such as its status and its mounts. */
  own: ({ file }) => fs.readFileSync(`/proc/self/${file}`, "utf8").slice(0, 200_000),
  machine: () => process.arch,
  /** What a program wrote, in Base64, and how it ended: `0`, or a signal's name. */
  run({ path }) {
    const { stdout, status, signal, error } = require("node:child_process").spawnSync(path, {
      timeout: limitMs,
    });
    if (error !== undefined && error.code !== "ETIMEDOUT") throw error;
    return `${signal ?? status} ${stdout.toString("base64")}`;
  },
  names: () => Object.keys(process.env).sort().join(),
  kernel: () => require("node:os").version(),
  memory({ mib }) {
    const held = [];
    for (let count = 0; count < mib; count += 8) held.push(Buffer.alloc(8 << 20, 1));
    return `${held.length * 8} MiB`;
  },
  async processes({ count }) {
    const children = [];
    try {
      for (let number = 0; number < count; number += 1) {
        const child = spawn("/bin/sleep", ["20"], { stdio: "ignore" });
        children.push(child);
        await new Promise((resolve, reject) => child.once("spawn", resolve).once("error", reject));
      }
      return `${count} at once`;
    } finally {
      for (const child of children) child.kill("SIGKILL");
    }
  },
  /** Hundredths of a core that this many threads had. */
  async cpu({ ms, threads = 1 }) {
    const { Worker } = require("node:worker_threads");
    const busy =
      'require("node:worker_threads").parentPort.once("message", (end) => { while (Date.now() < end); });';
    const workers = Array.from({ length: threads - 1 }, () => new Worker(busy, { eval: true }));
    await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once("online", resolve))));
    const exits = workers.map((worker) => new Promise((resolve) => worker.once("exit", resolve)));
    const [before, begin] = [process.cpuUsage(), Date.now()];
    for (const worker of workers) worker.postMessage(begin + ms);
    while (Date.now() - begin < ms);
    await Promise.all(exits);
    const { user, system } = process.cpuUsage(before);
    return `${Math.round((user + system) / (Date.now() - begin) / 10)}`;
  },
  disk({ folder = require("node:os").homedir(), mib }) {
    const path = `${folder}/fill-${process.pid}`;
    try {
      for (let count = 0; count < mib; count += 1) fs.appendFileSync(path, Buffer.alloc(1 << 20, 1));
      return `${mib} MiB`;
    } finally {
      fs.rmSync(path, { force: true });
    }
  },
};

async function main() {
  const asked = Object.entries(JSON.parse(process.argv.at(-1)));
  // Not null: an attempt that was never made must not count as refused.
  const unknown = asked.find(([, one]) => !Object.hasOwn(attempts, one.try));
  if (unknown !== undefined) throw new Error(`there is no attempt ${unknown[1].try}`);
  const attempt = async ([id, one]) => {
    try {
      return [id, (await attempts[one.try](one)) ?? null];
    } catch {
      return [id, null];
    }
  };
  const results = Object.fromEntries(await Promise.all(asked.map(attempt)));
  process.stdout.write(`${JSON.stringify(results)}\n`, () => process.exit());
}
main().catch((error) => {
  process.stderr.write(`${error}\n`, () => process.exit(1));
});
