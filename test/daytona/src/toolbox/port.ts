/** The daemon's port inside, as in Daytona. */
export const toolboxPort = 2280;

/** Its other services (`apps/daemon/cmd/daemon/main.go`): SSH, a terminal, recordings. */
export const otherPorts = [22220, 22222, 33333] as const;
