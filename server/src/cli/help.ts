import type { Command } from "commander";

/** What `ambit --help` says after the commands. */
export const help = `
Results go to stdout, logs to stderr.

Exit codes:
  0    success
  1    the run failed; a capability didn't hold (verify)
  2    invalid command line, configuration or environment
  3    the boundary can't be guaranteed: every gap is in the result; nothing is proven (verify, doctor),
       or not what is required (doctor)
  4    the request can't be used: every issue is in the result
  5    a run by hand paused: it asked something, and there was no terminal to answer at
  130  interrupted with Ctrl-C (143: by SIGTERM)
  141  what read the output closed its pipe, as \`head\` does: a run is cancelled

Environment:
  AMBIT_HOST, AMBIT_PORT   where to listen
  AMBIT_HEALTH_HOST, AMBIT_HEALTH_PORT  a second port for /health and /ready
  AMBIT_ADDRESS            where callers reach this replica, for other replicas to tell
  AMBIT_REPLICA_ID         the name that GET /health has of this replica
  AMBIT_TOKEN              the token callers must send; required beyond loopback
  AMBIT_AUTH               "none": a server on loopback requires no token
  AMBIT_CONFIG             the configuration file
  AMBIT_CONCURRENT_RUNS    runs at once; overrides limits.concurrentRuns
  AMBIT_INTERACTION_KEY_FILE  the key that replicas share to accept answers to each other's questions
  AMBIT_EGRESS_PROXY_CREDENTIALS  "user:password" for the proxy that egress.proxy names
  AMBIT_WEBHOOK_SECRET     signs webhooks: "whsec_" and 24 to 64 random bytes in base64
  AMBIT_DENY_PERMISSIONS   tools that no request can allow: "true", or comma-separated patterns
  AMBIT_LOG_LEVEL          debug, info, warn, error or silent`;

/** `ambit help agents install`: commander's own says nothing about a command that isn't there, and knows none below another. */
export function addHelpCommand(program: Command): void {
  program
    .helpCommand(false)
    .command("help [command...]")
    .description("display help for a command")
    .action((names: readonly string[] = []) => {
      let command = program;
      for (const name of names) {
        const inner = command.commands.find((one) => one.name() === name);
        if (inner === undefined)
          program.error(`error: unknown command '${names.join(" ")}'`, { code: "commander.unknownCommand" });
        command = inner;
      }
      command.help();
    });
}
