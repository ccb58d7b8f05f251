import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { codeOf } from "@ambit/core/plugin";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { marks, padded } from "../display/layout.js";
import { exitCodes } from "../exit-codes.js";

/** `ambit init`: writes a configuration that extends the defaults. An existing file stays as it is. */
export async function init(file = "ambit.config.mjs"): Promise<number> {
  if (!file.endsWith(".mjs"))
    throw new ConfigurationInvalid(file, ["must be a .mjs file: its choices are explained in comments"]);
  try {
    await writeFile(file, initialConfiguration, { flag: "wx" });
  } catch (cause) {
    const code = codeOf(cause);
    const reason =
      code === "EEXIST" ? "exists: move it away, or name another file" : `can't be written: ${code ?? cause}`;
    throw new ConfigurationInvalid(file, [reason], { cause });
  }
  process.stdout.write(
    [
      `${marks.holds} ${resolve(file)} is written. Commands in this folder use it; \`ambit run --folder\` with this folder uses it only if --config names it.`,
      "",
      "Next:",
      `  $EDITOR ${file}  choose: remove the //: before a line`,
      `${padded("  ambit doctor", `  $EDITOR ${file}`.length)}  what it guarantees on this host`,
      `${padded("  ambit serve", `  $EDITOR ${file}`.length)}  POST /run on http://127.0.0.1:8765`,
      "",
    ].join("\n"),
  );
  return exitCodes.ok;
}

/** A line that begins with `//:` is a choice; the other comments explain. */
export const initialConfiguration = `// Ambit's configuration. A line with //: is a choice: remove the //: and it applies.
// Every setting has a default. \`ambit plugins --json\` prints the JSON Schemas of all settings.
export default {
  // The default plugins are loaded too, after those of \`plugins\`.
  extends: "defaults",

  plugins: [
    // Never run without a boundary, even if a request asks for none.
    //: { use: "@ambit/sandbox-local", config: { unconfined: "refuse" } },

    // Other sandboxes. The first one that covers a request's boundary is taken, or the one that the request names.
    // Install a plugin next to this file first: npm install @ambit/sandbox-docker
    // A container for each sandbox; with \`runtime\`, on gVisor.
    //: { use: "@ambit/sandbox-docker", config: { runtime: "runsc" } },
    // A pod for each sandbox.
    //: { use: "@ambit/sandbox-kubernetes", config: { image: "registry.example.com/sandbox:1" } },
    // A sandbox on Daytona. Its key is read from DAYTONA_API_KEY.
    //: "@ambit/sandbox-daytona",

    // Runs of several replicas in PostgreSQL, at AMBIT_POSTGRES_URL, in place of SQLite.
    //: "@ambit/store-postgres",

    // Traces of all runs.
    //: { use: "@ambit/telemetry-opentelemetry", config: { endpoint: "http://127.0.0.1:4318" } },
  ],

  // Default plugins that aren't loaded. This one keeps runs beyond the process.
  //: without: ["@ambit/store-sqlite"],

  // What every request must restrict at least. One below it is refused.
  //: require: { network: "allowlist", filesystem: "workspace", secrets: "hidden", resources: { memoryMb: 4096 } },

  // Tools that no request can allow.
  //: permissions: { deny: ["Bash(rm:*)"] },

  // Concurrent runs, named sessions kept, and milliseconds from a run's admission to its result.
  //: limits: { concurrentRuns: 100, sessions: 32, runTimeoutMs: 39_600_000 },

  // Where the server listens. Beyond loopback, callers need a token: AMBIT_TOKEN, or \`tokens\`. With \`preview\`, servers
  // that agents start inside get URLs, on a port of their own.
  //: server: { host: "127.0.0.1", port: 8765, preview: { port: 8767 } },

  // Callers with tokens of their own, each with its own project. \`ambit token\` makes a token and its hash.
  //: tokens: [],

  // How long runs stay in the store.
  //: store: { maxAgeMs: 604_800_000 },
};
`;
