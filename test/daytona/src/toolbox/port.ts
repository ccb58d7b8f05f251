/** Where the daemon listens inside, as Daytona's does. */
export const toolboxPort = 2280;
