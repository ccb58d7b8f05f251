import { ChartColumn, CircleQuestionMark, List, Play, Server } from "lucide-react";

/** The screens of the menu. */
export const places = [
  { to: "/runs", label: "Runs", icon: <List />, also: "what runs, and what ran" },
  {
    to: "/questions",
    label: "Questions",
    icon: <CircleQuestionMark />,
    also: "approvals, forms, client tools",
  },
  { to: "/start", label: "Start", icon: <Play />, also: "a run, from an example or a request" },
  { to: "/usage", label: "Use", icon: <ChartColumn />, also: "runs, tokens and dollars, against the quotas" },
  { to: "/host", label: "Host", icon: <Server />, also: "sandboxes, agents, plugins and their proofs" },
] as const;
