import { attach } from "./attach.js";
import { serve } from "./serve.js";
import { readSettings } from "./settings.js";

// `attach` is the pipe's command, started anew with each pipe; `serve` outlives them and holds everything.
const [mode, ...rest] = process.argv.slice(2);
const settings = readSettings(rest);
if (mode === "serve") await serve(settings);
else await attach(settings);
