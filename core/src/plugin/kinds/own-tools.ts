/** What an agent's own tool does. A permission's pattern can name all tools of a class. */
export const toolClasses = ["shell", "edit", "read", "fetch"] as const;
export type ToolClass = (typeof toolClasses)[number];

/** An agent's own tools by name, each with what it does. */
export type OwnTools = Readonly<Record<string, ToolClass | "other">>;
