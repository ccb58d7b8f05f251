#!/usr/bin/env node
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { fixYoungHeapSize, tooFewOpenFiles } from "../process-resources.js";
import { version } from "../version.js";
import { completionScript, shells } from "./completion.js";
import { exitCodes, isClosedPipe } from "./exit-codes.js";
import { addHelpCommand, help } from "./help.js";
import { type PluginKind, pluginKinds } from "./plugin-kinds.js";

/** Each command is imported when it is called, so that its dependencies don't slow the others. */
function program(): Command {
  const ambit = new Command("ambit")
    .description("Runs a coding agent for one turn, inside a boundary that is guaranteed or refused.")
    .version(version())
    .option("--config <file>", "configuration (default: AMBIT_CONFIG, or ambit.config.mjs or .json here)")
    .addHelpText("after", help)
    .showHelpAfterError("(see `ambit --help`)")
    .exitOverride();

  ambit
    .command("serve")
    .description("listen for runs over HTTP")
    .option("--host <address>", "where to listen (default: 127.0.0.1)")
    .option("--port <number>", "0 selects a free port (default: 8765)", portNumber)
    .option("--console", "serve the console too, a page for people, under /console")
    .action(async (options) => {
      fixYoungHeapSize();
      const { serve } = await import("./commands/serve.js");
      await finish(serve({ ...ambit.opts(), ...options }));
    });
  ambit
    .command("run <request>")
    .description(
      "run one request: its file, `-` for stdin; or with one of the options from --agent on, the prompt of a run that they describe",
    )
    .option("--agent <name>", "the agent (see `ambit agents`)")
    .option("--folder <path>", "copy this folder's files into the workspace, and bring the changes back")
    .option("--in-place", "work in the folder itself instead of a copy; `ambit undo` goes back")
    .option(
      "--include <pattern>",
      "take files along that git ignores, such as node_modules; may be repeated",
      collected,
    )
    .option(
      "--setup <command>",
      'run this before the agent, such as "npm ci", and keep what it makes for later runs; may be repeated',
      collected,
    )
    .option("--setup-network <what>", "what --setup reaches, as --network (default: the same)")
    .option(
      "--setup-inputs <glob>",
      "a file that --setup depends on (default: manifests and lockfiles, and what its commands name); may be repeated",
      collected,
    )
    .option("--network <what>", "off, on, or destinations: example.com,10.0.0.0/8:443 (default: off)")
    .option("--filesystem <mode>", "workspace, readonly, off or on (default: workspace)")
    .option("--memory <MiB>", "memory of everything that the run starts", positiveNumber)
    .option("--secrets <what>", "hidden: no key can be read inside the sandbox")
    .option("--sandbox <name>", "the sandbox: local, docker, …")
    .option("--model <name>", "the model, as the agent names it, or provider/model")
    .option("--permissions <default>", "allow, allow_reads, ask or deny (default: allow_reads)")
    .option("--mcp <url>", "an MCP server, also `name=https://…`; may be repeated", collected)
    .option("--skill <folder>", "a skill: a folder with a SKILL.md; may be repeated", collected)
    .option("--resume", "continue the conversation of the last run with this folder")
    .option("--apply", "apply the changes to the folder without asking")
    .option("--no-apply", "only show them")
    .option("--patch <file>", "write them to this file, as a patch")
    .option(
      "--save <file>",
      "write the request to this file, without its credentials and the queries of its URLs, to send it later",
    )
    .addOption(stream)
    .addOption(json)
    .option("--timeline", "print a readable timeline, even if stdout is not a terminal")
    .option("--receipt", "the timeline, with how each guarantee of the receipt was proven")
    .action(async (file, options) => {
      const { run } = await import("./commands/run.js");
      await finish(run(file, { ...ambit.opts(), ...options }));
    });
  ambit
    .command("door <name> [arguments...]")
    .description(
      "serve one client of another protocol on standard input and output, by the plugin of that name",
    )
    .allowUnknownOption()
    .action(async (name, words) => {
      const { door } = await import("./commands/door.js");
      await finish(door(name, words, ambit.opts()));
    });
  ambit
    .command("acp [arguments...]")
    .description(
      "serve an editor that speaks ACP on standard input and output: --agent gemini works in the editor's folder, inside a boundary",
    )
    .allowUnknownOption()
    .action(async (words) => {
      const { door } = await import("./commands/door.js");
      await finish(door("acp", words, ambit.opts()));
    });
  ambit
    .command("undo [folder]")
    .description(
      "bring a folder back to what it was before the last run with --in-place (default: this folder)",
    )
    .action(async (folder = ".") => {
      const { undo } = await import("./commands/undo.js");
      await finish(undo(folder));
    });
  ambit
    .command("init [path]")
    .description(
      "write a configuration that extends the defaults, with each choice commented; or the folder of a plugin",
    )
    .addOption(
      new Option(
        "--plugin <kind>",
        "write a plugin that builds and passes its conformance kit, named after its folder",
      ).choices(pluginKinds),
    )
    .action(async (path, { plugin }: { plugin?: PluginKind }) => {
      if (plugin === undefined) {
        const { init } = await import("./commands/init.js");
        return await finish(init(path));
      }
      const { initPlugin } = await import("./commands/init-plugin.js");
      await finish(initPlugin(plugin, path));
    });
  ambit
    .command("plan <file>")
    .description("decide whether a request could run, without starting anything; `-` for stdin")
    .option("--json", "as data, as POST /plan answers")
    .action(async (file, options) => {
      const { plan } = await import("./commands/plan.js");
      await finish(plan(file, { ...ambit.opts(), ...options }));
    });
  ambit
    .command("prepare <file>")
    .description(
      "prepare the environment of a request for its runs: in a running server, else in this process",
    )
    .option("--url <url>", serverOption)
    .addOption(stream)
    .addOption(json)
    .option("--timeline", "print a readable timeline, even if stdout is not a terminal")
    .action(async (file, options) => {
      const { prepare } = await import("./commands/prepare.js");
      await finish(prepare(file, { ...ambit.opts(), ...options }));
    });
  ambit
    .command("console")
    .description(
      "sign in to the console of a server: prints a link that works once, and opens it at a terminal",
    )
    .addOption(
      new Option("--role <role>", "what its user may do (default: what this token may)").choices(roles),
    )
    .option("--user <name>", "who signs in, to be kept with what they answer")
    .option("--no-open", "only print the link")
    .option("--url <url>", serverOption)
    .action(async (options) => {
      const { openConsole } = await import("./commands/console.js");
      await finish(openConsole(options));
    });
  ambit
    .command("runs")
    .description("the latest runs that a server keeps, and which questions wait for an answer")
    .option("--limit <number>", "how many (default: 20)", positiveNumber)
    .addOption(new Option("--failed", "only those that failed").conflicts("state"))
    .addOption(
      new Option("--state <state>", "only these (default: all)").choices(["queued", "running", "ended"]),
    )
    .option("--session <id>", "only this session's")
    .option("--project <id>", "only this project's")
    .option("--url <url>", serverOption)
    .option("--json", "as data")
    .action(async (options) => {
      const { runs } = await import("./commands/runs.js");
      await finish(runs(options));
    });
  ambit
    .command("attach <run>")
    .description(
      "follow a run of a server from its beginning, until its result; by its id, or the beginning of it",
    )
    .option("--project <id>", projectOption)
    .option("--url <url>", serverOption)
    .addOption(stream)
    .addOption(json)
    .option("--timeline", "print a readable timeline, even if stdout is not a terminal")
    .option("--receipt", "the timeline, with how each guarantee of the receipt was proven")
    .action(async (run, options) => {
      const { attach } = await import("./commands/attach.js");
      await finish(attach(run, options));
    });
  ambit
    .command("cancel <run>")
    .description("end a run of a server early, by its id or the beginning of it; it still has its result")
    .option("--project <id>", projectOption)
    .option("--url <url>", serverOption)
    .action(async (run, options) => {
      const { cancel } = await import("./commands/runs.js");
      await finish(cancel(run, options));
    });
  ambit
    .command("answer <question>")
    .description(
      "answer what a run of a server asks, by the question's id or its beginning: live or for the next turn",
    )
    .option("--approve", "the call may be made")
    .option("--deny", "it may not")
    .option("--output <json>", "the call's output, for a client tool")
    .option("--url <url>", serverOption)
    .action(async (question, options) => {
      const { answer } = await import("./commands/answer.js");
      await finish(answer(question, options));
    });
  ambit
    .command("terminal <session>")
    .description(
      "a shell in the sandbox of a server's idle session, with the session's boundary; by its id, or the beginning of it",
    )
    .option("--project <id>", "the project of the session, where the operator's token may act for several")
    .option("--url <url>", serverOption)
    .action(async (session, options) => {
      const { terminal } = await import("./commands/terminal.js");
      await finish(terminal(session, options));
    });
  ambit
    .command("deliveries")
    .description("the messages of webhooks that a server keeps, and what became of them")
    .addOption(
      new Option("--state <state>", "only these (default: all)").choices(["pending", "delivered", "failed"]),
    )
    .option("--run <id>", "only this run's")
    .option("--url <url>", serverOption)
    .option("--json", "as data")
    .action(async (options) => {
      const { deliveries } = await import("./commands/deliveries.js");
      await finish(deliveries(options));
    });
  ambit
    .command("redeliver [messages...]")
    .description("send messages of webhooks again")
    .option("--failed", "all that failed")
    .option("--url <url>", serverOption)
    .action(async (messages, options) => {
      const { redeliver } = await import("./commands/deliveries.js");
      await finish(redeliver(messages, options));
    });
  ambit
    .command("plugins")
    .description("what is loaded, of every kind, and what was proven of it")
    .option("--probe", "probe what isn't proven yet on this host")
    .option("--json", "with findings and the JSON Schemas of the configuration")
    .action(async (options) => {
      const { plugins } = await import("./commands/plugins.js");
      await finish(plugins({ ...ambit.opts(), ...options }));
    });
  const agents = ambit
    .command("agents")
    .description("the agents that runs can name, their versions, and how to install them")
    .option("--json", "as data")
    .action(async (options) => {
      const { agents: list } = await import("./commands/agents.js");
      await finish(list({ ...ambit.opts(), ...options }));
    });
  agents
    .command("install <agent>")
    .description("install one, pinned to a version and checked against its digests")
    .action(async (agent) => {
      const { installAgent } = await import("./commands/agents.js");
      await finish(installAgent(agent, ambit.opts()));
    });
  ambit
    .command("doctor")
    .description(
      "what this host can guarantee, what it can't, and the fix; exits with 3 where that is nothing",
    )
    .option("--verbose", "how each capability was proven")
    .option(
      "--require <boundary>",
      "exit with 3 unless a sandbox guarantees this: network=off,filesystem=workspace,memoryMb=2048 (default: `require` of the configuration)",
    )
    .option("--json", "as data")
    .action(async (options) => {
      const { doctor } = await import("./commands/doctor.js");
      await finish(doctor({ ...ambit.opts(), ...options }));
    });
  ambit
    .command("compat")
    .description("recorded requests of the runner that Ambit replaces")
    .command("check <files...>")
    .description(
      "report what would differ for them without running them: one JSON request, a JSON array, or one per line",
    )
    .option("--json", "as data")
    .action(async (files, options) => {
      const { compatCheck } = await import("./commands/compat.js");
      await finish(compatCheck(files, { ...ambit.opts(), ...options }));
    });
  ambit
    .command("verify")
    .description("attack a sandbox on this host, each attack with its control, and show the results")
    .option("--sandbox <name>", "a sandbox by name (default: the first configured)")
    .option("--capability <names...>", "only these (default: all)")
    .option("--verbose", "every attack, with what was seen of it")
    .option("--json", "as data")
    .action(async (options) => {
      const { verify } = await import("./commands/verify.js");
      await finish(verify({ ...ambit.opts(), ...options }));
    });
  ambit
    .command("token")
    .description("make a token for a tenant, and the hash of it that the configuration holds")
    .option("--local", "print the token that a server of this machine made for its callers instead")
    .option("--url <url>", serverOption)
    .action(async (options) => {
      const { token } = await import("./commands/token.js");
      await finish(token(options));
    });
  ambit
    .command("completion")
    .description("print a script that completes commands and options in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(shells))
    .action((shell) => {
      process.stdout.write(completionScript(shell, ambit));
    });
  addHelpCommand(ambit);
  return ambit;
}

/** Of people who sign in to the console. */
const roles = ["viewer", "answerer", "operator"];

/** How a run is printed: one way at a time. */
const stream = new Option("--stream", "print NDJSON records as they happen").conflicts([
  "json",
  "timeline",
  "receipt",
]);
const json = new Option("--json", "print the result, even at a terminal").conflicts(["timeline", "receipt"]);

const serverOption = "the server (default: AMBIT_ADDRESS, else where AMBIT_HOST and AMBIT_PORT say)";
/** For the operator's token. */
const projectOption = "the run's project, where several have a run of this id";

function collected(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

function positiveNumber(text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new InvalidArgumentError("It must be a positive whole number.");
}

function portNumber(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535 && text !== "") return port;
  throw new InvalidArgumentError("It must be 0 to 65535.");
}

/** A command resolves with its exit code once it is done. */
async function finish(command: Promise<number>): Promise<void> {
  const code = await command;
  // A pipe takes output asynchronously; an exit now would truncate it.
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  process.exit(code);
}

const shortage = tooFewOpenFiles();
if (shortage !== undefined) {
  process.stderr.write(`ambit: ${shortage}\n`);
  process.exit(exitCodes.usage);
}

// A reader such as `head` closes the pipe early: the rest of the output isn't wanted.
process.stdout.on("error", (error) => {
  if (!isClosedPipe(error)) throw error;
});

try {
  await program().parseAsync();
} catch (error) {
  if (error instanceof CommanderError)
    process.exitCode = error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  else {
    const { explain } = await import("./explain.js");
    // Whatever a plugin has left open, a command that failed ends.
    await finish(Promise.resolve(explain(error, process.stderr)));
  }
}
