import type { Permission, PermissionMode } from "@ambit/core/contract";
import type { PermissionCeiling } from "../../src/index.js";

/** What decides about one call, and what must come out: the permission in force, and what happens to the call. */
export interface PermissionCase {
  readonly name: string;
  readonly mode: PermissionMode;
  /** The tool's own permission. */
  readonly tool?: Permission;
  /** Its MCP server's. Given, the tool is that server's. */
  readonly server?: Permission;
  readonly rules?: readonly (readonly [pattern: string, permission: Permission])[];
  readonly readOnly?: boolean;
  readonly ceiling?: PermissionCeiling;
  /** The user's stored answer for just this call. */
  readonly stored?: "allow" | "deny";
  /** Fulfilled by the user's browser. */
  readonly client?: true;
  /** Default `{ command: "git push origin" }`. */
  readonly arguments?: unknown;
  readonly expected: { readonly effective: Permission; readonly verdict: "allow" | "deny" | "park" };
}

const allow = { effective: "allow", verdict: "allow" } as const;
const deny = { effective: "deny", verdict: "deny" } as const;
const parks = { effective: "ask", verdict: "park" } as const;

/** The tool is called `Bash` in all of them. */
export const permissionCases: readonly PermissionCase[] = [
  // The default
  { name: "allow allows", mode: "allow", expected: allow },
  { name: "ask parks", mode: "ask", expected: parks },
  { name: "deny denies", mode: "deny", expected: deny },
  { name: "allow_reads parks what may write", mode: "allow_reads", expected: parks },
  { name: "allow_reads allows what only reads", mode: "allow_reads", readOnly: true, expected: allow },
  { name: "allow_reads parks what says it writes", mode: "allow_reads", readOnly: false, expected: parks },
  { name: "ask parks a reader too", mode: "ask", readOnly: true, expected: parks },
  { name: "deny denies a reader too", mode: "deny", readOnly: true, expected: deny },
  // The tool's own permission stands above all but the ceiling
  { name: "own allow over default deny", mode: "deny", tool: "allow", expected: allow },
  { name: "own allow over default ask", mode: "ask", tool: "allow", expected: allow },
  { name: "own ask over default allow", mode: "allow", tool: "ask", expected: parks },
  {
    name: "own ask over a reader's default",
    mode: "allow_reads",
    tool: "ask",
    readOnly: true,
    expected: parks,
  },
  { name: "own deny over default allow", mode: "allow", tool: "deny", expected: deny },
  {
    name: "own deny over a reader's default",
    mode: "allow_reads",
    tool: "deny",
    readOnly: true,
    expected: deny,
  },
  {
    name: "own allow over a rule's deny",
    mode: "ask",
    tool: "allow",
    rules: [["Bash", "deny"]],
    expected: allow,
  },
  {
    name: "own deny over a rule's allow",
    mode: "allow",
    tool: "deny",
    rules: [["Bash", "allow"]],
    expected: deny,
  },
  {
    name: "own ask over a rule's allow",
    mode: "allow",
    tool: "ask",
    rules: [["Bash", "allow"]],
    expected: parks,
  },
  // The server's
  { name: "server allow over default deny", mode: "deny", server: "allow", expected: allow },
  { name: "server ask over default allow", mode: "allow", server: "ask", expected: parks },
  { name: "server deny over default allow", mode: "allow", server: "deny", expected: deny },
  {
    name: "server deny over a rule's allow",
    mode: "allow",
    server: "deny",
    rules: [["Bash", "allow"]],
    expected: deny,
  },
  {
    name: "server allow over a rule's deny",
    mode: "ask",
    server: "allow",
    rules: [["Bash", "deny"]],
    expected: allow,
  },
  { name: "own deny over server allow", mode: "allow", tool: "deny", server: "allow", expected: deny },
  { name: "own allow over server deny", mode: "deny", tool: "allow", server: "deny", expected: allow },
  // Rules: the strictest match
  { name: "rule allow over default ask", mode: "ask", rules: [["Bash", "allow"]], expected: allow },
  { name: "rule deny over default allow", mode: "allow", rules: [["Bash", "deny"]], expected: deny },
  { name: "rule ask over default allow", mode: "allow", rules: [["Bash", "ask"]], expected: parks },
  {
    name: "rule ask over a reader's default",
    mode: "allow_reads",
    readOnly: true,
    rules: [["Bash", "ask"]],
    expected: parks,
  },
  {
    name: "of two matching rules deny beats allow, in either order",
    mode: "ask",
    rules: [
      ["Bash", "allow"],
      ["Bash(git:*)", "deny"],
    ],
    expected: deny,
  },
  {
    name: "of two matching rules ask beats allow",
    mode: "allow",
    rules: [
      ["Bash(git:*)", "ask"],
      ["Bash", "allow"],
    ],
    expected: parks,
  },
  {
    name: "of three matching rules deny beats ask and allow",
    mode: "allow",
    rules: [
      ["Bash", "allow"],
      ["Bash", "deny"],
      ["Bash", "ask"],
    ],
    expected: deny,
  },
  {
    name: "a rule for another name doesn't match",
    mode: "allow",
    rules: [["Write", "deny"]],
    expected: allow,
  },
  { name: "a name is matched whole", mode: "allow", rules: [["Bas", "deny"]], expected: allow },
  { name: "a name is matched by case", mode: "allow", rules: [["bash", "deny"]], expected: allow },
  { name: "a prefix that fits", mode: "ask", rules: [["Bash(git push:*)", "allow"]], expected: allow },
  { name: "a prefix that doesn't", mode: "ask", rules: [["Bash(rm:*)", "allow"]], expected: parks },
  { name: "an empty prefix fits every text", mode: "ask", rules: [["Bash(:*)", "allow"]], expected: allow },
  {
    name: "an allow by prefix isn't for another text than the command",
    mode: "ask",
    arguments: { timeout: 3, command: "rm -rf x", note: "git" },
    rules: [["Bash(git:*)", "allow"]],
    expected: parks,
  },
  {
    name: "a prefix of an argument that is a text itself",
    mode: "ask",
    arguments: "git log",
    rules: [["Bash(git:*)", "allow"]],
    expected: allow,
  },
  {
    name: "an allow by prefix fits no call without texts",
    mode: "ask",
    arguments: { n: 1 },
    rules: [["Bash(:*)", "allow"]],
    expected: parks,
  },
  {
    name: "a prefix with brackets and stars is taken as it is",
    mode: "ask",
    arguments: { command: "f(*) x" },
    rules: [["Bash(f(*):*)", "allow"]],
    expected: allow,
  },
  {
    name: "a denied prefix behind another argument",
    mode: "allow",
    arguments: { aaa: "git", command: "  rm -rf x" },
    rules: [["Bash(rm:*)", "deny"]],
    expected: deny,
  },
  {
    name: "a ceiling's prefix behind another argument",
    mode: "allow",
    tool: "allow",
    arguments: { aaa: "git", command: ["rm", "-rf", "x"] },
    ceiling: ["Bash(rm -rf:*)"],
    expected: deny,
  },
  // Stored answers: looked at only where the permission asks
  {
    name: "a stored allow answers an ask",
    mode: "ask",
    stored: "allow",
    expected: { effective: "ask", verdict: "allow" },
  },
  {
    name: "a stored deny answers an ask",
    mode: "ask",
    stored: "deny",
    expected: { effective: "ask", verdict: "deny" },
  },
  {
    name: "a stored allow answers a rule's ask",
    mode: "allow",
    rules: [["Bash", "ask"]],
    stored: "allow",
    expected: { effective: "ask", verdict: "allow" },
  },
  { name: "a stored allow does not override a default deny", mode: "deny", stored: "allow", expected: deny },
  {
    name: "a stored allow does not override the tool's deny",
    mode: "allow",
    tool: "deny",
    stored: "allow",
    expected: deny,
  },
  {
    name: "a stored allow does not override the server's deny",
    mode: "allow",
    server: "deny",
    stored: "allow",
    expected: deny,
  },
  {
    name: "a stored allow does not override a rule's deny",
    mode: "allow",
    rules: [["Bash", "deny"]],
    stored: "allow",
    expected: deny,
  },
  { name: "a stored deny does not override an allow", mode: "allow", stored: "deny", expected: allow },
  // The operator's ceiling
  { name: "the ceiling denies all", mode: "allow", ceiling: true, expected: deny },
  {
    name: "the ceiling stands above the tool's own allow",
    mode: "allow",
    tool: "allow",
    ceiling: ["Bash"],
    expected: deny,
  },
  {
    name: "the ceiling stands above the server's allow",
    mode: "allow",
    server: "allow",
    ceiling: ["Bash"],
    expected: deny,
  },
  {
    name: "the ceiling stands above a stored allow",
    mode: "ask",
    stored: "allow",
    ceiling: ["Bash"],
    expected: deny,
  },
  {
    name: "the ceiling stands above a reader",
    mode: "allow_reads",
    readOnly: true,
    ceiling: ["Bash"],
    expected: deny,
  },
  {
    name: "a ceiling by prefix",
    mode: "allow",
    tool: "allow",
    ceiling: ["Bash(git push:*)"],
    expected: deny,
  },
  { name: "a ceiling for another call", mode: "allow", ceiling: ["Bash(rm:*)", "Write"], expected: allow },
  // Client tools: answering is the consent
  {
    name: "a client tool isn't asked about twice",
    mode: "ask",
    client: true,
    expected: { effective: "ask", verdict: "allow" },
  },
  {
    name: "a client tool that writes under allow_reads",
    mode: "allow_reads",
    client: true,
    expected: { effective: "ask", verdict: "allow" },
  },
  { name: "a client tool can be denied", mode: "allow", tool: "deny", client: true, expected: deny },
  {
    name: "a client tool's deny beats a stored allow",
    mode: "allow",
    tool: "deny",
    client: true,
    stored: "allow",
    expected: deny,
  },
  { name: "a client tool under the ceiling", mode: "allow", client: true, ceiling: true, expected: deny },
];
