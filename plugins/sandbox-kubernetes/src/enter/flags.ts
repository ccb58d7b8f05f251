/** MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND of linux/mount.h. */
export const [readOnly, noSuid, noDevices, noPrograms, remount, bind] = [1, 2, 4, 8, 32, 4096] as const;
