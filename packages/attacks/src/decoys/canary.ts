/** The variable that holds the decoys' secret in the runner's own environment while attacks run. */
export const canary = "KIT_CANARY";
