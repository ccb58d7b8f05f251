/** The reasons for the end of a turn in ACP v1 (`StopReason`). */
export const stopReasons = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"] as const;
export type StopReason = (typeof stopReasons)[number];

/** Verbs that become an ACP tool call. With `!` after the verb, permission is asked first. */
interface AsTool {
  readonly askFirst: boolean;
}

/** One parsed line of a script. `README.md` shows an example of each. */
export type Instruction =
  | { readonly verb: "say"; readonly text: string }
  | { readonly verb: "think"; readonly text: string }
  | { readonly verb: "stream"; readonly chunks: number; readonly text: string | undefined }
  | { readonly verb: "big"; readonly bytes: number }
  | { readonly verb: "image" }
  | { readonly verb: "plan"; readonly entries: readonly string[] }
  | { readonly verb: "env" }
  | { readonly verb: "tools" }
  | { readonly verb: "attachments" }
  | { readonly verb: "recall" }
  | ({
      readonly verb: "call";
      readonly tool: string;
      readonly input: Readonly<Record<string, unknown>>;
    } & AsTool)
  | ({ readonly verb: "run"; readonly command: string } & AsTool)
  | ({ readonly verb: "read"; readonly path: string } & AsTool)
  | ({ readonly verb: "write"; readonly path: string; readonly text: string } & AsTool)
  | ({ readonly verb: "fetch"; readonly url: string } & AsTool)
  | { readonly verb: "ask"; readonly text: string }
  | { readonly verb: "delegate"; readonly script: string; readonly steps: readonly Step[] }
  | { readonly verb: "sleep"; readonly milliseconds: number }
  | { readonly verb: "usage"; readonly inputTokens: number; readonly outputTokens: number }
  | { readonly verb: "stop"; readonly reason: StopReason }
  | { readonly verb: "fail"; readonly text: string }
  | { readonly verb: "crash"; readonly text: string }
  | { readonly verb: "hang" }
  | { readonly verb: "deaf" }
  | { readonly verb: "noise" }
  | { readonly verb: "late"; readonly milliseconds: number; readonly text: string }
  | { readonly verb: "detach"; readonly seconds: number };

export type Verb = Instruction["verb"];

/** An invalid line that is answered instead of executed; `reply` is the agent's answer. */
export interface Complaint {
  readonly verb: "complain";
  readonly reply: string;
}

/** The agent's next step: one instruction, or several that run at the same time. */
export type Step =
  | Instruction
  | Complaint
  | { readonly verb: "together"; readonly steps: readonly (Instruction | Complaint)[] };

/** The syntax of each verb, in the order in which the agent lists them. */
export const usageOf: Readonly<Record<Verb, string>> = {
  say: "say TEXT",
  think: "think TEXT",
  call: "call TOOL {JSON}",
  run: "run COMMAND",
  read: "read PATH",
  write: "write PATH TEXT",
  fetch: "fetch URL",
  ask: "ask TEXT",
  delegate: "delegate INSTRUCTION",
  env: "env",
  tools: "tools",
  attachments: "attachments",
  recall: "recall",
  plan: "plan [ENTRY; ENTRY]",
  image: "image",
  stream: "stream COUNT [TEXT]",
  big: "big BYTES",
  sleep: "sleep MILLISECONDS",
  usage: "usage INPUT OUTPUT",
  stop: `stop ${stopReasons.join("|")}`,
  fail: "fail TEXT",
  crash: "crash [TEXT]",
  hang: "hang",
  deaf: "deaf",
  noise: "noise",
  late: "late MILLISECONDS TEXT",
  detach: "detach [SECONDS]",
};

/** The answer to a prompt without any instruction. */
export const greeting = [
  "Hello! I am Ambit's demo agent. I have no model: I follow a script, one instruction per line.",
  "Try:",
  "  say hello",
  "  run ls",
  "I know:",
  ...Object.values(usageOf).map((usage) => `  ${usage}`),
  "With ! behind call, run, read, write or fetch I ask for permission first.",
  "Neighbouring lines that start with & run at the same time.",
].join("\n");
