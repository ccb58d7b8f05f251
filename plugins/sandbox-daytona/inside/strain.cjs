// Runs in a sandbox: takes as much of something as it gets, up to a limit, and prints how far it came as JSON lines.
// Argument: {"kind": "memory" | "disk", "mib"} or {"kind": "cpu", "ms"}.
"use strict";
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { Worker } = require("node:worker_threads");

const order = JSON.parse(process.argv[process.argv.length - 1]);
const step = 32;
// At once: the next step may be the last one of this process.
const say = (came) => fs.writeSync(1, `${JSON.stringify({ came })}\n`);

const kinds = {
  memory({ mib }) {
    const taken = [];
    for (let came = 0; came < mib; came += step) {
      taken.push(Buffer.alloc(step << 20, 1));
      say(came + step);
    }
  },
  disk({ mib }) {
    const file = path.join(os.homedir(), `ambit-strain-${process.pid}`);
    const block = Buffer.alloc(step << 20, 1);
    const descriptor = fs.openSync(file, "wx");
    try {
      for (let came = 0; came < mib; came += step) {
        if (fs.writeSync(descriptor, block) < block.length) return;
        say(came + step);
      }
    } catch (error) {
      if (error.code !== "ENOSPC" && error.code !== "EDQUOT") throw error;
    } finally {
      fs.closeSync(descriptor);
      fs.unlinkSync(file);
    }
  },
  /** Cores that were had. */
  cpu({ ms }) {
    const busy =
      'require("node:worker_threads").parentPort.once("message", (end) => { while (Date.now() < end); });';
    const workers = Array.from({ length: 4 }, () => new Worker(busy, { eval: true }));
    let waiting = workers.length;
    let left = workers.length;
    const start = () => {
      const begun = process.cpuUsage();
      const since = process.hrtime.bigint();
      for (const worker of workers) {
        worker.once("exit", () => {
          left -= 1;
          if (left > 0) return;
          const { user, system } = process.cpuUsage(begun);
          say((user + system) / (Number(process.hrtime.bigint() - since) / 1_000));
        });
        worker.postMessage(Date.now() + ms);
      }
    };
    for (const worker of workers) {
      worker.once("online", () => {
        waiting -= 1;
        if (waiting === 0) start();
      });
    }
  },
};
say(0);
kinds[order.kind](order);
