import { attach } from "./connection/attach.js";
import { serveDirectly } from "./connection/direct.js";
import { ownPipes } from "./connection/hand-over.js";
import { serve } from "./connection/serve.js";
import { readSettings } from "./settings.js";

// Before anything uses the pool, which is made at its first use: its threads count towards the sandbox's limit of processes.
process.env.UV_THREADPOOL_SIZE = "1";

// `attach` is the pipe's command, started again for each pipe; `serve` outlives them and holds everything. Both are for lines,
// or for bytes. `first` serves bytes, and its own standard streams are the first pipe. `direct` is both, for a single permanent
// pipe. A rejection ends the process with its error.
const [mode, ...rest] = process.argv.slice(2);
const settings = readSettings(rest);
if (mode === "serve" || mode === "serve-bytes") void serve(settings, mode === "serve-bytes");
else if (mode === "first") void serve(settings, true, ownPipes());
else if (mode === "direct") serveDirectly(settings);
else
  attach(settings, mode === "attach-bytes").catch((error: Error) => {
    // Where the runner reads it: a pipe may carry standard output alone.
    process.stdout.write(`${error.message}\n`, () => process.exit(1));
  });
