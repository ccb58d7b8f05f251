/** Calls that no request can allow: `true` denies every call, a list those that match one of its patterns. */
export type PermissionCeiling = true | readonly string[];

/** Keeps secrets out of the log until the returned function is called. */
export type HideSecrets = (secrets: readonly string[]) => () => void;
