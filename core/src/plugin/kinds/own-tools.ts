/** The class of an agent's own tool. A permission's pattern can name all tools of a class. */
export const toolClasses = ["shell", "edit", "read", "fetch"] as const;
export type ToolClass = (typeof toolClasses)[number];

/** An agent's own tools by name, each with its class. */
export type OwnTools = Readonly<Record<string, ToolClass | "other">>;
