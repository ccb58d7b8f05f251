import type { Command } from "commander";

/** Shells that `ambit completion` writes a script for. */
export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

interface Described {
  readonly name: string;
  readonly description: string;
  readonly options: readonly { readonly name: string; readonly description: string }[];
}

/** A script for a shell's start-up file that completes commands and options: `ambit completion bash >> ~/.bashrc`. */
export function completionScript(shell: Shell, program: Command): string {
  const commands = program.commands.map(describe);
  switch (shell) {
    case "bash":
      return bash(commands);
    case "zsh":
      // zsh runs bash's completions.
      return `autoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;
    case "fish":
      return fish(commands);
  }
}

function describe(command: Command): Described {
  return {
    name: command.name(),
    description: command.description(),
    options: command.options
      .filter(({ hidden }) => !hidden)
      .map(({ long, flags, description }) => ({ name: long ?? flags, description })),
  };
}

function bash(commands: readonly Described[]): string {
  const cases = commands.map(
    ({ name, options }) => `    ${name}) words="${options.map((option) => option.name).join(" ")}" ;;`,
  );
  return `_ambit() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words=""
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="${commands.map(({ name }) => name).join(" ")} --config --help --version"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ \${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- "$current"))
}
complete -o filenames -F _ambit ambit
`;
}

function fish(commands: readonly Described[]): string {
  const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = commands.flatMap(({ name, description, options }) => [
    `complete -c ambit -n __fish_use_subcommand -a ${name} -d ${quoted(description)}`,
    ...options.map(
      (option) =>
        `complete -c ambit -n '__fish_seen_subcommand_from ${name}' -l ${option.name.replace(/^--/, "")} -d ${quoted(option.description)}`,
    ),
  ]);
  return `${lines.join("\n")}\n`;
}
