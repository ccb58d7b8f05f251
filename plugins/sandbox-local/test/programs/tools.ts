import type { Program } from "./program.js";

const git = "git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main";

/** What a developer uses besides a language. */
export const tools: readonly Program[] = [
  {
    name: "git",
    does: "commits, branches, rebases, stashes, clones, adds a worktree and a submodule",
    needs: ["git"],
    script: `
${git} init -q one; cd one; echo a > a; git add a; ${git} commit -qm first; git switch -qc side; echo b >> a
${git} commit -qam second; git switch -q -; echo c > c; git add c; ${git} commit -qm third; git switch -q side; ${git} rebase -q -
echo d >> a; ${git} stash -q; ${git} stash pop -q; git worktree add -q ../tree; cd ..
git clone -q one two; cd two; ${git} -c protocol.file.allow=always submodule --quiet add ../one part; ${git} commit -qm part
git log --oneline | wc -l; git -C ../tree status -s | wc -l; git fsck 2>&1 | grep -c error`,
    prints: /^4\n0\n0\n/,
  },
  {
    name: "git, a separate folder",
    does: "works where .git is a file or a link",
    needs: ["git"],
    script: `
${git} init -q --separate-git-dir="$PWD/store" tree; cd tree; ${git} commit -q --allow-empty -m one; git log --oneline | wc -l
cd ..; mkdir linked; ln -s ../store linked/.git; git -C linked log --oneline | wc -l`,
    prints: /1\n1\n/,
  },
  {
    name: "tar, gzip, xz, zstd, zip",
    does: "packs and unpacks links, modes and times",
    needs: ["tar", "gzip", "xz"],
    script: `
mkdir in; echo text > in/file; ln -s file in/link; ln in/file in/hard; chmod 750 in; touch -d 2001-02-03 in/file
for way in z J; do tar -c$way -f out.tar in && mkdir out$way && tar -x -C out$way -f out.tar && stat -c '%Y %h' out$way/in/file; done
cat outz/in/link; stat -c %a outJ/in`,
    prints: /(981\d+ 2\n){2}text\n750/,
  },
  {
    name: "SQLite",
    does: "a database with a write-ahead log",
    needs: ["sqlite3"],
    script: `sqlite3 data.db 'pragma journal_mode=wal; create table t(a); insert into t values(42); select a from t;'`,
    prints: /wal\n42/,
  },
  {
    name: "jq",
    does: "reads JSON",
    needs: ["jq"],
    script: `echo '{"a":[1,2]}' | jq -c '.a | map(. * 2)'`,
    prints: /\[2,4\]/,
  },
  {
    name: "sed, awk, grep, find, xargs",
    does: "edits files in place",
    needs: ["sed", "awk", "xargs"],
    script: `mkdir d; echo one > d/a; find d -type f -print0 | xargs -0 sed -i s/one/two/; awk '{ print $1 $1 }' d/a; grep -rl two d`,
    prints: /twotwo\nd\/a/,
  },
  {
    name: "patch, diff",
    does: "applies a change",
    needs: ["patch", "diff"],
    script: `printf 'a\\nb\\n' > x; printf 'a\\nc\\n' > y; diff -u x y > z; patch -s x z; cat x`,
    prints: /a\nc/,
  },
  {
    name: "vim",
    does: "edits a file from a script",
    needs: ["vim"],
    script: `echo one > f; vim -es -u NONE -c '%s/one/two/' -c wq f; cat f`,
    prints: /two/,
  },
  {
    name: "tmux",
    does: "runs a command in its own terminal",
    needs: ["tmux"],
    script: `tmux -f /dev/null new-session -d 'tty > seen'; for i in 1 2 3 4 5 6 7 8 9; do [ -s seen ] && break; sleep 0.2; done; cat seen`,
    prints: /\/dev\/pts\/\d/,
  },
  {
    name: "script",
    does: "a pseudo-terminal",
    needs: ["script"],
    script: `script -qec 'tty; stty size' /dev/null`,
    prints: /\/dev\/pts\/\d/,
  },
  {
    name: "ssh-keygen",
    does: "makes a key",
    needs: ["ssh-keygen"],
    script: `ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -lf key.pub`,
    prints: /256 SHA256:.*agent@sandbox/,
  },
  {
    name: "gpg",
    does: "makes a key with its agent, signs and checks",
    needs: ["gpg"],
    script: `export GNUPGHOME=$HOME/keys; mkdir -m 700 $GNUPGHOME; gpg --batch -q --passphrase '' --quick-gen-key a@example.com default default never 2>/dev/null; echo text | gpg --batch -q -s | gpg --batch -q -d 2>&1`,
    prints: /text[\s\S]*Good signature/,
  },
  {
    name: "OpenSSL",
    does: "makes a certificate, and checks one of the system's",
    needs: ["openssl"],
    script: `openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=a 2>/dev/null; openssl verify -CAfile cert cert; ls /etc/ssl/certs | grep -c pem`,
    prints: /cert: OK\n[1-9]/,
  },
  {
    name: "lscpu, nproc, free, df, ps",
    does: "say what there is",
    needs: ["lscpu", "free", "ps"],
    script: `lscpu | grep -c '^CPU(s):'; nproc | grep -c '^[1-9]'; free -m | grep -c Mem; df . | wc -l; ps -o comm= -p $$`,
    prints: /^1\n1\n1\n2\nsh\n/,
  },
  {
    name: "man",
    does: "shows a page, and says where pages are",
    needs: ["man"],
    script: `manpath; echo '.TH A 1
.SH NAME
a \\- shown' > a.1; man ./a.1 | cat`,
    prints: /^[^\n]*\/usr\/share\/man[\s\S]*shown/,
  },
  {
    name: "whoami, getent, hostname",
    does: "find the user, its home and the host",
    needs: ["getent"],
    script: `whoami; [ "$(getent passwd "$USER" | cut -d: -f6)" = "$HOME" ] && [ -d "$HOME" ] && echo home; hostname; getent hosts "$(hostname)"`,
    prints: /agent\nhome\nsandbox\n127\.0\.0\.1\s+localhost sandbox/,
  },
  {
    name: "flock, mkfifo, nohup, setsid, timeout",
    does: "locks, pipes, background work",
    needs: ["flock", "setsid"],
    script: `mkfifo p; (flock 9; echo locked > p) 9> lock & cat p; nohup setsid sh -c 'echo behind > out' >/dev/null 2>&1; cat out; timeout 0.1 sleep 5; echo $?`,
    prints: /locked\nbehind\n124/,
  },
  {
    name: "shared memory, semaphores",
    does: "POSIX and System V, between processes",
    needs: ["python3"],
    script: `python3 -c 'from multiprocessing import shared_memory, Semaphore; m = shared_memory.SharedMemory(create=True, size=8); print(m.size >= 8); m.unlink(); Semaphore(1).acquire(); print("taken")'; ipcmk -Q | grep -c id`,
    prints: /True\ntaken\n1/,
  },
  {
    name: "mktemp",
    does: "scratch in /tmp, /var/tmp and /dev/shm",
    needs: ["mktemp"],
    script: `for d in /tmp /var/tmp /dev/shm; do mktemp -p $d | xargs dirname; done; stat -c %a /tmp`,
    prints: /\/tmp\n\/var\/tmp\n\/dev\/shm\n1777/,
  },
];
