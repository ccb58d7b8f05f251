import type { Command } from "commander";

/** `ambit help agents install`: commander's own says nothing about a command that isn't there, and knows none below another. */
export function addHelpCommand(program: Command): void {
  program
    .helpCommand(false)
    .command("help [command...]")
    .description("display help for a command")
    .action((names: readonly string[] = []) => {
      let found = program;
      for (const name of names) {
        const inner = found.commands.find((one) => one.name() === name);
        if (inner === undefined)
          program.error(`error: unknown command '${names.join(" ")}'`, { code: "commander.unknownCommand" });
        found = inner;
      }
      found.help();
    });
}
