/** What a tool of an agent's own does, as a permission's pattern may name all such tools at once. */
export const toolClasses = ["shell", "edit", "read", "fetch"] as const;
export type ToolClass = (typeof toolClasses)[number];

/** An agent's own tools by name, each with what it does. */
export type OwnTools = Readonly<Record<string, ToolClass | "other">>;
