import { Socket } from "node:net";
import { GateProgram } from "./gate-program.js";

/** Records that wait for the runner: while there are more, connections are refused. */
const maxWaitingBytes = 1024 * 1024;

// Not `process.stdout`, whose writes to a pipe are synchronous and block everything else.
const output = new Socket({ fd: 1, readable: false, writable: true });
const end = () => process.exit();
const program = new GateProgram({
  say: (line) => {
    if (output.writableLength > maxWaitingBytes)
      throw new Error("the runner takes no more records of connections");
    output.write(line);
  },
  end,
});
process.stdin.on("data", (bytes: Buffer) => program.push(bytes));
// The runner, or the way to it, is gone.
for (const event of ["end", "close", "error"]) process.stdin.once(event, end);
output.once("error", end);
