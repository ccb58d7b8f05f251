import { allow, deny, type PermissionCase, parks } from "./permission-case.js";

/** The default, the tool's own permission and its server's. */
export const ladderCases: readonly PermissionCase[] = [
  // The default
  { name: "allow allows", mode: "allow", expected: allow },
  { name: "ask parks", mode: "ask", expected: parks },
  { name: "deny denies", mode: "deny", expected: deny },
  { name: "allow_reads parks what may write", mode: "allow_reads", expected: parks },
  { name: "allow_reads allows what only reads", mode: "allow_reads", readOnly: true, expected: allow },
  { name: "allow_reads parks what says it writes", mode: "allow_reads", readOnly: false, expected: parks },
  { name: "ask parks a reader too", mode: "ask", readOnly: true, expected: parks },
  { name: "deny denies a reader too", mode: "deny", readOnly: true, expected: deny },
  // The tool's own permission beats all but the ceiling
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
];
