import { allow, deny, type PermissionCase } from "./permission-case.js";

/** Stored answers, the operator's ceiling, client tools. */
export const ceilingCases: readonly PermissionCase[] = [
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
    name: "the ceiling beats the tool's own allow",
    mode: "allow",
    tool: "allow",
    ceiling: ["Bash"],
    expected: deny,
  },
  {
    name: "the ceiling beats the server's allow",
    mode: "allow",
    server: "allow",
    ceiling: ["Bash"],
    expected: deny,
  },
  {
    name: "the ceiling beats a stored allow",
    mode: "ask",
    stored: "allow",
    ceiling: ["Bash"],
    expected: deny,
  },
  {
    name: "the ceiling beats a reader",
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
