/** Where the daemon listens inside, as Daytona's does. */
export const toolboxPort = 2280;

/** Its other services (`apps/daemon/cmd/daemon/main.go`): SSH, a terminal, recordings. */
export const otherPorts = [22220, 22222, 33333] as const;
