export type paths = Record<string, never>;
export interface webhooks {
    run: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * A run has ended, or asks its user something
         * @description Signed by the Standard Webhooks specification: verify it with one of its libraries. Sent again until the answer is a 2xx; 410 ends that. The same message may come twice, and messages may come in another order.
         */
        post: operations["webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        /** RunRequest */
        RunRequest: {
            /** @description Names the run, so that it can be cancelled before its result is known; the header `Idempotency-Key` does the same, and with a store gives the run of that id again. 1 to 128 of `A-Z a-z 0-9 _ . : -`. Refused while a run of the same token's project with this id is in progress, or stored. Default: an id that the runner generates. */
            runId?: string;
            /** @description The agent to run, by its id or an alias. Default: the first one loaded. */
            harness?: string;
            /** @description The sandbox backend, by name. Default: the first one loaded that covers the whole boundary. */
            sandbox?: string;
            /** @description Names the session, which keeps the sandbox, workspace and agent between runs. At most 256 characters. Blank means absent: the session ends with the run. */
            sessionId?: string;
            /**
             * @description `continue` or `new`: whether the agent continues the session's conversation. `new` drops what the agent remembers and keeps the files, which is the way out of a conversation that has become too long or that its model refuses; earlier `messages` are replayed if the request has them. Default: `continue`.
             * @enum {string}
             */
            conversation?: "continue" | "new";
            /** @description Standing instructions, written to the file of the workspace where the agent reads them. */
            agentsMd?: string;
            /** @description Standing instructions of the platform, before the author's: in front of `appendSystemPrompt` where the agent takes one, else of `agentsMd`. A change alone doesn't restart the agent of a kept session. */
            platformInstructions?: string;
            /** @description Facts that hold for this turn only: put in front of its prompt, and not part of the conversation that later turns get. */
            turnContext?: string;
            /** @description Replaces the agent's system prompt. An issue for an agent that doesn't support it. */
            systemPrompt?: string;
            /** @description Added to the agent's system prompt. An issue for an agent that doesn't support it. */
            appendSystemPrompt?: string;
            /** @description The model, as the agent names it, or `provider/model`. Default: the agent's own. */
            model?: string;
            /**
             * @description How much the model reasons: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`. An issue for an agent that doesn't have this value. Default: the agent's own.
             * @enum {string}
             */
            reasoningEffort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";
            /** @description The conversation, oldest first, at most 10,000 messages. The last user message with content is the prompt. Tool results at the end continue the turn that waited for them. May be absent or empty where an answer to the session's latest question is stored: the turn then continues with that answer. */
            messages?: components["schemas"]["Message"][];
            /** @description Tools, at most 1,000. */
            customTools?: components["schemas"]["ToolSpec"][];
            /** @description Where `callback` tools are executed. Without an endpoint it counts as absent. */
            toolCallback?: {
                /**
                 * Format: uri
                 * @description The http(s) URL that calls are posted to. A destination of the run: a restricted network must list it.
                 */
                endpoint: string;
                /** @description Sent verbatim as the `Authorization` header. Never enters the sandbox. */
                authorization?: string;
            };
            /** @description MCP servers of the user, at most 64. */
            mcpServers?: components["schemas"]["McpServer"][];
            /** @description Skills, at most 256, written into the workspace where agents find them. */
            skills?: {
                /** @description Lower-case letters, digits and hyphens; unique. The name of its folder. */
                name: string;
                /** @description When the agent should use it. Default: empty. */
                description?: string;
                /** @description The text of its `SKILL.md`. */
                body: string;
                /** @description Files next to its `SKILL.md`. */
                files?: {
                    /** @description Relative to the skill's folder, which it can't leave; unique. */
                    path: string;
                    /** @description The file's text. */
                    content: string;
                    /** @description Asks for the executable bit. Default: false. */
                    executable?: boolean;
                }[];
                /** @description Only the user may invoke it, not the model. Default: false. */
                disableModelInvocation?: boolean;
                /** @description Grants the executable bit to the files that ask for it. Default: false. */
                allowExecutableFiles?: boolean;
            }[];
            /** @description Files to write into a new workspace before the agent starts, at most 1,000. */
            harnessFiles?: {
                /** @description Relative to the workspace, which it can't leave: no `..`, NUL or backslash; unique. */
                path: string;
                /** @description The file's text. */
                content: string;
            }[];
            /** @description What a new workspace begins with. Default: `harnessFiles` and skills only. */
            workspace?: {
                /** @description What a new workspace begins with, in this order, at most 16; `harnessFiles` come after. A later run of the session keeps its workspace as it is. Default: none. */
                sources?: ({
                    /**
                     * @description `files`.
                     * @constant
                     */
                    type: "files";
                    /** @description The files, at most 10,000. */
                    files: {
                        /** @description Relative to the source's folder, which it can't leave; unique. */
                        path: string;
                        /** @description The file's content, as `encoding` says. */
                        content: string;
                        /**
                         * @description `utf8`, the default: `content` is the text · `base64`: of a binary file.
                         * @enum {string}
                         */
                        encoding?: "utf8" | "base64";
                        /** @description Whether it is executable. Default: false. */
                        executable?: boolean;
                    }[];
                    /** @description The folder in the workspace that it goes into. Default: the workspace itself. */
                    into?: string;
                } | {
                    /**
                     * @description `git`.
                     * @constant
                     */
                    type: "git";
                    /** @description The repository's URL, over HTTPS and without a credential in it. HTTP only for an address in `workspace.allowedRanges` of the server's configuration. */
                    url: string;
                    /** @description A branch, a tag, or a name below `refs/`. Default: the remote's HEAD. */
                    ref?: string;
                    /** @description A commit by its whole id, instead of `ref`. */
                    commit?: string;
                    /** @description Commits of history that are fetched. Default: 1. */
                    depth?: number;
                    /** @description Files and folders of the repository that are wanted, at most 256; content of others isn't fetched where the host supports that, except, for git inside, what the fetched commits changed. Default: all. */
                    sparse?: string[];
                    /** @description Whether submodules on the same host come too, at any depth. Default: false. */
                    submodules?: boolean;
                    /** @description Whether contents in git LFS are downloaded: `true` from the same host, or `{hosts}`. Default: false, their pointers. */
                    lfs?: boolean | {
                        /** @description Further hosts from which its server has the contents downloaded, each with an optional `:port` (default 443). The credential isn't sent there. */
                        hosts: string[];
                    };
                    /** @description Whether `.git` comes too, with `depth` commits of history, so that git works inside. Default: false, files only. */
                    repository?: boolean;
                    /** @description What the repository needs. It is put on requests outside every sandbox, and used only to fetch this repository. Default: none. */
                    credential?: {
                        /** @description The secret: 8 to 4,096 characters of printable ASCII. As `basic`: the password, or `user:password`. */
                        value: string;
                        /**
                         * @description How it is sent: `basic`, the default, or `bearer`.
                         * @enum {string}
                         */
                        as?: "basic" | "bearer";
                        /** @description Further paths of the same host that it is used with, such as those of private submodules: `/acme/*`, or `/acme/part.git` for all of that repository. Default: the repository's own. */
                        paths?: string[];
                    };
                    /** @description The folder in the workspace that it goes into. Default: the workspace itself. */
                    into?: string;
                } | {
                    /**
                     * @description `archive`.
                     * @constant
                     */
                    type: "archive";
                    /**
                     * Format: base64
                     * @description The archive, in base64. Either this or `url`.
                     */
                    data?: string;
                    /** @description Where the archive is downloaded from, over HTTPS and without a credential before its host. HTTP only for an address in `workspace.allowedRanges` of the server's configuration. Needs `sha256`. */
                    url?: string;
                    /**
                     * @description `tar`, `tar.gz`, `tar.zst` or `zip`. Links in it are left out, and the receipt names them.
                     * @enum {string}
                     */
                    format: "tar" | "tar.gz" | "tar.zst" | "zip";
                    /** @description The archive's digest; another one fails the run before anything is unpacked. Required with `url`. Default: `data` isn't checked. */
                    sha256?: string;
                    /** @description What the download needs. The runner sends it to the scheme, host and port of `url` only, never after a redirect to another one. Default: none. */
                    credential?: {
                        /** @description The secret: 8 to 4,096 characters of printable ASCII. As `basic`: the password, or `user:password`. */
                        value: string;
                        /**
                         * @description How it is sent in `Authorization`: `bearer`, the default, or `basic`.
                         * @enum {string}
                         */
                        as?: "bearer" | "basic";
                    };
                    /** @description The folder in the workspace that it goes into. Default: the workspace itself. */
                    into?: string;
                })[];
                /** @description Who makes the commits that the agent makes with git: written to `.gitconfig` in the home of a new session. Default: git inside has no user, and refuses to commit. */
                gitUser?: {
                    /** @description The name in a commit. */
                    name: string;
                    /** @description The address in a commit. */
                    email: string;
                };
            };
            /** @description The image that the sandbox must have, and what is prepared in a new workspace before the agent starts, by commands with a boundary of their own, and kept for later runs. Commands need `sandboxPermission.filesystem` to be `workspace`, or `on` in a sandbox with an image. Default: neither. */
            environment?: {
                /** @description The image that the run's sandbox must have, by its name: `node:22` is also `docker.io/library/node:22`. Only backends that are configured with it are chosen. Default: that of the chosen backend. */
                image?: string;
                /** @description Commands for `/bin/sh`, run one after the other in the workspace, at most 32. One that doesn't exit with 0 fails the run. What their processes leave running ends with them. At least one, unless there is a `devcontainer`, or nothing but an `image`. */
                setup?: string[];
                /** @description Takes commands and variables from the `devcontainer.json` of the request's one git source, at its commit: `onCreateCommand`, `updateContentCommand`, `postCreateCommand`, which run before `setup`, `containerEnv` and `remoteEnv`. What it asks for and Ambit doesn't do fails the run. `{}` for the usual file. Default: it isn't read. */
                devcontainer?: {
                    /** @description The file in the repository. Default: `.devcontainer/devcontainer.json`, else `.devcontainer.json`. */
                    path?: string;
                    /**
                     * @description `same`, the default: an `image` of the file must be the sandbox's own · `ignore`: the sandbox's own is used whatever the file names.
                     * @enum {string}
                     */
                    image?: "same" | "ignore";
                };
                /** @description Variables of the commands, in plain text. The agent doesn't get them. */
                env?: {
                    [key: string]: string;
                };
                /** @description Of the files in `workspace.sources`, those that the setup depends on, as globs such as `**\/package-lock.json`, at most 64. What was prepared is used again until one of them changes, and only what the commands made is kept: files of the sources are always as this request has them. All sources must be of type `files`. Default: every file counts. */
                inputs?: string[];
                /** @description Credentials of the commands, at most 32, as `credentials` of a request, without `refresh`: the commands have placeholders, and the agent has neither. What is kept is searched for them. */
                credentials?: {
                    /** @description The agent's variable that holds the placeholder. */
                    name: string & (unknown & unknown);
                    /** @description The secret: 8 to 4,096 characters of printable ASCII. As `basic`: the password, or `user:password`. */
                    value: string;
                    /** @description Names that it may be sent to, over TLS, each with an optional `:port` (default 443). The network's allowlist must include them. */
                    hosts: string[];
                    /** @description `bearer` or `basic` (in `Authorization`), or `{header}`: a header that holds only the value. It is replaced nowhere else. */
                    as: ("bearer" | "basic") | {
                        /** @description The header's name. */
                        header: string;
                    };
                    /** @description The only HTTP methods that it is used with. Default: all. */
                    methods?: string[];
                    /** @description The only paths that it is used with: exact, or `/prefix/*`. A `%2F` matches only itself. Where `access` lists git's services, an exact path is a repository's, and all below it. Default: all. */
                    paths?: string[];
                    /** @description `read`: only requests that read (GET, HEAD, OPTIONS, git fetch); a git push is refused. `write`, the default: all. A list of git's services: only these, and no other request: `fetch`, `push`, and `lfs` for the contents that those download or upload. */
                    access?: ("read" | "write") | ("fetch" | "push" | "lfs")[];
                }[];
                /** @description What the commands may touch, as in `sandboxPermission`; its `filesystem` is the agent's always. Default: the run's `sandboxPermission`. */
                boundary?: components["schemas"]["SandboxPermission"];
                /**
                 * @description `use`, the default: an environment that was prepared from the same commit, commands and boundary is used again, by runs of the same project only · `refresh`: it is prepared again, and the new one kept · `off`: it isn't kept.
                 * @enum {string}
                 */
                cache?: "use" | "refresh" | "off";
                /** @description True: the run prepares the environment, or finds it prepared, and ends without an agent. Default: false. */
                prepareOnly?: boolean;
            };
            /** @description The new session begins as a copy of another one's workspace, home and conversation. A session that has begun already ignores it. Default: it begins empty. */
            fork?: {
                /** @description The id of a session of the same project on this runner that no run uses now. */
                session?: string;
                /** @description The id of a snapshot of the same project: `POST /sessions/{sessionId}/snapshot`. */
                snapshot?: string;
            };
            /** @description Ports inside the sandbox that get a URL on the runner, at most 8: HTTP and WebSocket, signed, and closed with the session. The event `preview` has each URL. Needs `server.preview` in the server's configuration, and a sandbox that can carry a connection to exactly these ports. Default: nothing inside can be reached. */
            ports?: {
                /** @description The TCP port where a program of the run will listen, on the sandbox's own loopback or on every address of it; 1024 or higher. */
                port: number;
                /** @description Names it in the event `preview`: 1 to 32 of `a-z 0-9 -`. Unique in a request. */
                name: string;
            }[];
            /** @description What leaves the workspace when the run ends or pauses: `GET /runs/{runId}/files`, `/patch` and `/archive` have it as long as the run is kept. Default: nothing. */
            outputs?: {
                /** @description Files that leave the workspace, as globs relative to it, such as `dist/**` (`*`, `**`, `?`, `[…]`, `{a,b}`; names that begin with a dot match too); at most 64. */
                include?: string[];
                /** @description True: what the run changed, as a patch in git's format, binary files included. New files that a `.gitignore` of the workspace excludes aren't part of it. Default: false. */
                patch?: boolean;
                /** @description What the run changed, as a commit on a branch, pushed when the run has completed. Needs `patch`. Default: no commit. */
                git?: {
                    /**
                     * @description `branch`, the default: the commit is pushed. `none`: it is only kept, as `GET /runs/{runId}/bundle`.
                     * @enum {string}
                     */
                    push?: "branch" | "none";
                    /** @description A pull request (GitLab: merge request) for the branch, opened when it was pushed. One that is open already is taken. Default: none. */
                    pullRequest?: {
                        /** @description Its title. */
                        title: string;
                        /** @description Its description, in the host's Markdown. Default: empty. */
                        body?: string;
                        /** @description The branch that it asks to be merged into. */
                        base: string;
                        /** @description Whether it is a draft. Default: false. */
                        draft?: boolean;
                        /** @description Its labels, at most 100; Bitbucket has none. Default: none. */
                        labels?: string[];
                        /**
                         * @description What the repository's host runs: `github` (also GitHub Enterprise), `gitlab`, `gitea` (also Forgejo), `bitbucket` (Cloud), `bitbucket-data-center` or `azure` (Azure DevOps). Default: by the host's name: `github.com`, `gitlab.com`, `gitea.com`, `codeberg.org`, `bitbucket.org`, `dev.azure.com` and those below `visualstudio.com`; required for any other host.
                         * @enum {string}
                         */
                        host?: "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucket-data-center" | "azure";
                        /** @description The API's base URL, over HTTPS. Default: `https://api.github.com`; `https://api.bitbucket.org/2.0`; of another host `/api/v3` (GitHub Enterprise), `/api/v4` (GitLab), `/api/v1` (Gitea), `/rest/api/1.0` (Bitbucket Data Center), or the organization or collection (Azure DevOps). */
                        apiUrl?: string;
                        /** @description A token for the API, sent as its host takes one, or `user:password`, sent as `Basic`. Default: that of the push. */
                        credential?: {
                            /** @description The secret: 8 to 4,096 characters of printable ASCII. As `basic`: the password, or `user:password`. */
                            value: string;
                        };
                    };
                    /** @description The branch of the commit, pushed to the repository of the request's one git source. It must be new, or still be the commit that the workspace began with; nothing is overwritten. */
                    branch: string;
                    /** @description The commit's message. */
                    message: string;
                    /** @description The commit's author and committer. */
                    author: {
                        /** @description The name in a commit. */
                        name: string;
                        /** @description The address in a commit. */
                        email: string;
                    };
                    /** @description What the push needs. It is put on requests outside every sandbox, and used only to push to this repository. Default: none. */
                    credential?: {
                        /** @description The secret: 8 to 4,096 characters of printable ASCII. As `basic`: the password, or `user:password`. */
                        value: string;
                        /**
                         * @description How it is sent: `basic`, the default, or `bearer`.
                         * @enum {string}
                         */
                        as?: "basic" | "bearer";
                        /** @description Further paths of the same host that it is used with, such as those of private submodules: `/acme/*`, or `/acme/part.git` for all of that repository. Default: the repository's own. */
                        paths?: string[];
                    };
                };
                /** @description Files that leave; the receipt names what is left out. Default: 1,000; at most 10,000. */
                maxFiles?: number;
                /** @description Bytes of all of them; the receipt names what is left out. Default: 67,108,864 (64 MiB); at most 1 GiB. */
                maxBytes?: number;
            };
            /** @description How the agent reaches its model. */
            modelConnection?: components["schemas"]["ModelConnection"];
            /** @description What the run may use of its model. A run whose model no loaded model gateway counts is refused. */
            budget?: {
                /** @description US dollars, by the prices in the model gateway's configuration. Every model of the run needs one. */
                usd?: number;
                /** @description Tokens, in and out, including cached ones. */
                tokens?: number;
                /** @description Requests to the model that generate an answer. */
                requests?: number;
                /** @description The same for all runs of the session together. The runner remembers it for a day after the session's last run. */
                session?: {
                    /** @description US dollars, by the prices in the model gateway's configuration. Every model of the run needs one. */
                    usd?: number;
                    /** @description Tokens, in and out, including cached ones. */
                    tokens?: number;
                    /** @description Requests to the model that generate an answer. */
                    requests?: number;
                };
                /**
                 * @description `fail`: the run ends with `budget_exceeded` once more than that was used. `ask`: before the next request to the model the user is asked, as for an approval, and each yes grants the same amount again.
                 * @enum {string}
                 */
                onExceeded?: "fail" | "ask";
            };
            /** @description Credentials that stay outside the sandbox, at most 32. Inside there is a placeholder; the egress proxy replaces it with the value in requests to its hosts. A sandbox that can't do that refuses the run. */
            credentials?: {
                /** @description The agent's variable that holds the placeholder. */
                name: string & (unknown & unknown);
                /** @description The secret: 8 to 4,096 characters of printable ASCII. As `basic`: the password, or `user:password`. */
                value: string;
                /** @description Names that it may be sent to, over TLS, each with an optional `:port` (default 443). The network's allowlist must include them. */
                hosts: string[];
                /** @description `bearer` or `basic` (in `Authorization`), or `{header}`: a header that holds only the value. It is replaced nowhere else. */
                as: ("bearer" | "basic") | {
                    /** @description The header's name. */
                    header: string;
                };
                /** @description The only HTTP methods that it is used with. Default: all. */
                methods?: string[];
                /** @description The only paths that it is used with: exact, or `/prefix/*`. A `%2F` matches only itself. Where `access` lists git's services, an exact path is a repository's, and all below it. Default: all. */
                paths?: string[];
                /** @description `read`: only requests that read (GET, HEAD, OPTIONS, git fetch); a git push is refused. `write`, the default: all. A list of git's services: only these, and no other request: `fetch`, `push`, and `lfs` for the contents that those download or upload. */
                access?: ("read" | "write") | ("fetch" | "push" | "lfs")[];
                /** @description For a value that expires during the run: the runner asks the platform for a new one before it puts the credential on a request. Default: the value is used as long as the session lives. */
                refresh?: {
                    /**
                     * Format: uri
                     * @description Where the runner asks for a new value, with `POST`. An https URL; http only at a private address that the server's operator allows. Redirects are not followed.
                     */
                    url: string;
                    /** @description Sent to `url` verbatim as the `Authorization` header. Default: none is sent. */
                    authorization?: string;
                    /**
                     * Format: date-time
                     * @description When the given `value` expires (ISO 8601): it isn't sent from then on. Default: unknown, and a new value is asked for before the first use.
                     */
                    expiresAt?: string;
                };
            }[];
            /** @description Credentials that the agent and its commands can read in their environment, at most 32. The receipt names them; under `sandboxPermission.secrets: "hidden"` the run is refused. */
            sandboxCredentials?: {
                /** @description Where the value goes. */
                binding: {
                    /**
                     * @description `environment`.
                     * @constant
                     */
                    kind: "environment";
                    /** @description The variable's name; unique, and none that the agent or the runner sets. */
                    name: string & (unknown & unknown);
                };
                /** @description The secret, without NUL. */
                value: string;
            }[];
            /** @description Whether a call may run, when neither its tool nor its server says. */
            permissions?: {
                /**
                 * @description `allow`, `ask`, `deny`, or `allow_reads`, the default: read-only tools run, others ask. It applies to the agent's own tools too, or the run is refused.
                 * @enum {string}
                 */
                default?: "allow" | "ask" | "deny" | "allow_reads";
                /** @description Rules on tools by name, at most 1,000. The strictest match applies. */
                rules?: {
                    /** @description `Name`, or `Name(prefix:*)`, with a prefix of at most 256 characters. `shell`, `edit`, `read` and `fetch` name the agent's own tools by what they do, as do `Bash`, `Edit`, `Write`, `Read` and `WebFetch`. A `deny` or `ask` matches if any text in the arguments begins with the prefix, an `allow` only if the argument that names the command does. A prefix is not a shell policy; the boundary is. */
                    pattern: string;
                    /**
                     * @description `allow`, `ask` or `deny`.
                     * @enum {string}
                     */
                    permission: "allow" | "ask" | "deny";
                }[];
            };
            /** @description The boundary: what the run may touch. It is guaranteed, or the run is refused. */
            sandboxPermission?: components["schemas"]["SandboxPermission"];
            /** @description What this call is part of. */
            context?: {
                /** @description The caller's trace. Default: that of the headers. */
                propagation?: {
                    /** @description W3C trace context. Its trace id is the result's `traceId`. */
                    traceparent?: string;
                    /** @description W3C trace state, passed on with the trace. */
                    tracestate?: string;
                    /** @description W3C baggage, passed on to `toolCallback`. */
                    baggage?: string;
                };
            };
            /** @description The run's trace, exported by `@ambit/telemetry-opentelemetry`. Credentials are redacted in it. */
            telemetry?: {
                /** @description What may be captured. */
                capture?: {
                    /** @description Whether content may be captured. */
                    content?: {
                        /** @description True: prompts, output, and arguments and results of tools are part of the trace. Default: false. */
                        enabled?: boolean;
                    };
                };
                /** @description Where the run's trace goes. */
                exporters?: {
                    /** @description An OTLP exporter. */
                    otlp?: {
                        /**
                         * Format: uri
                         * @description Its URL: OTLP over HTTP, the base or the whole path (`…/v1/traces`). Default: where the operator's configuration sends traces, if anywhere.
                         */
                        endpoint?: string;
                        /** @description Its headers, such as an API key. */
                        headers?: {
                            [key: string]: string;
                        };
                    };
                };
            };
            /** @description A mode of the agent, such as Codex's `read-only`. An issue for an agent without this mode. */
            harnessMode?: string;
            /** @description How the run waits for its user when a call needs one: a client tool, or a permission that asks. */
            interactions?: {
                /** @description Milliseconds that a call may wait for a live answer (`POST /runs/{runId}/interactions/{id}`) before the run pauses. Default 0: it pauses immediately. Never longer than the agent or the runner lets a call wait. */
                waitMs?: number;
            };
            /** @description True: the run is answered with 202 and its address, `/runs/{runId}`, and continues in the background; the header `Prefer: respond-async` does the same, and lets it wait for a free slot. Needs a store. Default: false. */
            detach?: boolean;
            /**
             * @description `cancel` or `continue`: what happens to the run when its caller disconnects before the result. Default: `continue` with a `sessionId`, `cancel` without. A run that continues can be cancelled and killed, and its time limits apply.
             * @enum {string}
             */
            onDisconnect?: "cancel" | "continue";
            /** @description Where the run's outcome and its questions are posted, signed by the Standard Webhooks specification. Needs a store, and a secret in the server's configuration. */
            webhook?: {
                /**
                 * Format: uri
                 * @description The receiver's address. The runner posts to it directly; redirects are not followed. The store holds it encrypted.
                 */
                url: string;
                /** @description What is sent: `run.finished`, `run.failed`, `interaction.requested`, `interaction.expired`. Default: all of them. A paused run has finished, with the `stopReason` `paused`. */
                events?: ("run.finished" | "run.failed" | "interaction.requested" | "interaction.expired")[];
            };
            /** @description The values that `$ctx.…` bindings of tools refer to; `project.id` is the project where `projectId` is absent. The model never sees them. */
            runContext?: Record<string, unknown>;
            /**
             * @description What happens to this run while another one has its session. `refuse`: it fails with `session_in_use`. `queue`: it waits, in the order of arrival and without one of the server's slots, until those before it have ended. `interrupt`: the runs of the session before it are cancelled, those that wait included, and it begins when they have ended; what they have done stays in the conversation. A run that waits has the state `queued`. Without a `sessionId` it changes nothing. Default: `refuse`.
             * @enum {string}
             */
            whenBusy?: "refuse" | "queue" | "interrupt";
            /** @description The platform's id of the turn, which `POST /cancel` names. A run of a session begins with an event `turn` that has it. Default: the run's id. */
            turnId?: string;
            /** @description Separates sessions with the same id by project, also for `POST /kill`. Default: `runContext.project.id`. */
            projectId?: string;
        };
        /** KillRequest */
        KillRequest: {
            sessionId: string;
            projectId?: string | null;
        };
        /** RunMessage */
        RunMessage: {
            /** @description Text, or a list of blocks that the agent takes in a prompt. */
            content: string | components["schemas"]["ContentBlock"][];
        };
        /** TokenRequest */
        TokenRequest: {
            /** @description The session, which needn't exist yet. */
            sessionId: string;
            /** @description The session's project. Default: that of `request`; a tenant's own. */
            projectId?: string | null;
            /** @description `read`: the session's runs with their events, files and questions. `answer`: its questions. `run`: begin runs of it, and cancel them. */
            may: ("read" | "answer" | "run")[];
            /** @description Milliseconds until it expires. Default: 900,000 (15 minutes); at most a day. */
            ttlMs?: number;
            /** @description Everything of the page's runs but `sessionId`, `messages` and `runId`: a RunRequest, planned now. Needed for `run`. It is encrypted in the token, and the page can't read it. */
            request?: Record<string, unknown>;
        };
        /** TerminalRequest */
        TerminalRequest: {
            /** @description Characters of a line. */
            columns?: number;
            /** @description Lines. */
            rows?: number;
        };
        /** TerminalInput */
        TerminalInput: {
            /** @description What is typed, as a terminal sends it: Enter is a carriage return. */
            input?: string;
            /** @description Characters of a line. */
            columns?: number;
            /** @description Lines. */
            rows?: number;
        };
        /** CancelTurnRequest */
        CancelTurnRequest: {
            id: string;
            sessionId: string;
            projectId?: string | null;
            /** @constant */
            kind?: "cancel";
            target?: {
                turnId?: string | null;
                expectedTurnId?: string | null;
            } | null;
            createdAt?: (string | number) | null;
        };
        /** InteractionAnswer */
        InteractionAnswer: {
            approved: boolean;
        } | {
            output: unknown;
            isError?: boolean;
        };
        /** Message */
        Message: {
            /**
             * @description `user`, `assistant`, `system` or `tool`.
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** @description Text, or a list of blocks. Default: empty. */
            content?: string | components["schemas"]["ContentBlock"][];
        };
        /** ContentBlock */
        ContentBlock: {
            /** @description `text`, `image` and `resource` go to the agent. `tool_call` and `tool_result` record calls. A `file` or `attachment` with its content in `data` or `uri` becomes an `image` or `resource`. `audio` goes to an agent that takes sound. In this turn's messages, any other type is refused, and so is a file or image without content. */
            type: string;
            /** @description The text of a `text` block, or of a resource. */
            text?: string;
            /** @description The content of an `image` or `resource`: base64, or a `data:` URI. */
            data?: string;
            /** @description The media type of `data`. Default: that of a `data:` URI, else `image/png` for an `image`. */
            mimeType?: string;
            /** @description Where a resource is; passed to the agent, not fetched. A `data:` URI is its content. */
            uri?: string;
            /** @description Links a `tool_result` to its `tool_call`. An answer counts only under the id of the `interaction_request` (`ask_…`), after the last text of the user or the last message of the assistant. */
            toolCallId?: string;
            /** @description The tool that was called. */
            toolName?: string;
            /** @description The call's arguments. An answer counts only for a call with the arguments that it was asked about. */
            input?: unknown;
            /** @description The call's result, or `{approved}` where a permission was asked for. */
            output?: unknown;
            /** @description Whether `output` reports a failure. */
            isError?: boolean;
            /** @description An attachment of this turn is in the platform's own store, which Ambit can't reach: send its content as an `image` or `resource` block. In earlier messages, and beside its content, it is ignored. */
            attachmentId?: string;
            /** @description The name of an attachment or resource. */
            filename?: string;
            /** @description The size of an attachment, in bytes. */
            size?: number;
        };
        /** ToolSpec */
        ToolSpec: {
            /** @description 1 to 128 of `A-Z a-z 0-9 _ . -`; unique. */
            name: string;
            /** @description Tells the model what the tool does. */
            description?: string;
            /** @description JSON Schema of the arguments: passed to the agent unchanged, and every call is checked against it. A keyword that holds something else than JSON Schema says is refused. Default: an object without properties. */
            inputSchema?: Record<string, unknown>;
            /** @description Who executes it: `callback` (the default), `code`, `client`, or a kind of a loaded plugin. */
            kind?: string;
            /**
             * @description `allow`, `ask` or `deny`: overrides server, rules and default.
             * @enum {string}
             */
            permission?: "allow" | "ask" | "deny";
            /** @description Whether it only reads: under `allow_reads` such a tool runs, others ask. */
            readOnly?: boolean;
            /** @description How a user interface may show it: copied onto its `tool_call` and `tool_result` events. Its `kind` is `component`, `source`, `spec`, `connect`, `elicitation`, or any other text. */
            render?: {
                kind: string;
            } & {
                [key: string]: unknown;
            };
            /** @description Milliseconds a call may take, 24 h at most. Default: the runner's `limits.toolMs`. */
            timeoutMs?: number;
            /** @description `callback`: the name under which the platform knows the tool. */
            callRef?: string;
            /** @description `callback`: a call that goes directly to a path of the platform. Excludes `callRef`. */
            call?: {
                /**
                 * @description `GET`, `POST`, `PUT` or `DELETE`.
                 * @enum {string}
                 */
                method: "GET" | "POST" | "PUT" | "DELETE";
                /** @description Absolute path, on the origin of `toolCallback.endpoint`. */
                path: string;
                /** @description Fields that the model can't change. */
                body?: Record<string, unknown>;
                /** @description Dotted path in the body to `$ctx.…`, filled from `runContext`. */
                context?: Record<string, unknown>;
                /** @description Dotted path in the body where the arguments go. Default: its root. */
                args_into?: string;
            };
            /** @description Dotted path in the arguments to `$ctx.…`, filled from `runContext`. */
            contextBindings?: {
                [key: string]: string;
            };
            /** @description Names of arguments that are shown to people and not sent to the platform. */
            ephemeralArgs?: string[];
            /**
             * @description `code`: `python` or `node`.
             * @enum {string}
             */
            runtime?: "python" | "node";
            /** @description `code`: the source; it defines `main`. */
            code?: string;
            /** @description `code`: variables of this tool's process; no other process can read them. */
            env?: {
                [key: string]: string;
            };
            /** @description What a plugin's own kind needs beyond these fields. */
            options?: Record<string, unknown>;
        };
        /** McpServer */
        McpServer: {
            /** @description 1 to 64 of `A-Z a-z 0-9 _ -`; unique. `ambit` is the runner's own. */
            name: string;
            /** @description How it is reached. */
            connection: {
                /**
                 * @description `http`: called by the runner.
                 * @constant
                 */
                type: "http";
                /**
                 * Format: uri
                 * @description `http`: http(s) URL. A destination of the run: a restricted network must list it.
                 */
                url: string;
                /** @description `http`: headers that are not secret. */
                headers?: {
                    [key: string]: string;
                };
                /** @description `http`: headers that are secret. They never enter the sandbox. */
                credentials?: {
                    /** @description Where the value goes. */
                    binding: {
                        /**
                         * @description `header`.
                         * @constant
                         */
                        kind: "header";
                        /** @description The header's name. */
                        name: string;
                    };
                    /** @description The secret; one line. */
                    value: string;
                    /**
                     * @description `opaque_http`, the default: only the server reads it.
                     * @constant
                     */
                    usage?: "opaque_http";
                }[];
            } | {
                /**
                 * @description `stdio`: a process inside the sandbox.
                 * @constant
                 */
                type: "stdio";
                /** @description `stdio`: the program, run inside the sandbox. */
                command: string;
                /** @description `stdio`: its arguments. */
                args?: string[];
                /** @description `stdio`: variables of this server's process only. */
                env?: {
                    [key: string]: string;
                };
            };
            /** @description What the agent may use of it. Default: all its tools, subject to `permissions`. */
            policy?: {
                /** @description Which of its tools the agent sees. */
                tools?: {
                    /**
                     * @description `all`, the default, or `include`.
                     * @enum {string}
                     */
                    mode?: "all" | "include";
                    /** @description With `include`: the tools that are shown. Refused with `all`. */
                    names?: string[];
                };
                /**
                 * @description `allow`, `ask` or `deny`: overrides rules and default.
                 * @enum {string}
                 */
                permission?: "allow" | "ask" | "deny";
                /** @description `allow`, `ask` or `deny` by the server's own name of a tool: overrides `permission`, rules and default. With it, a tool that it doesn't name has `newToolPermission`. */
                toolPermissions?: unknown;
                /**
                 * @description The permission of every tool that `toolPermissions` doesn't name; overrides `permission`. Default: `ask` where there are `toolPermissions`.
                 * @enum {string}
                 */
                newToolPermission?: "allow" | "ask" | "deny";
            };
        };
        /** ModelConnection */
        ModelConnection: {
            /** @description The issuer of the credential: `anthropic`, `openai`, `google`, … */
            provider?: string;
            /** @description How the provider is reached, where an agent distinguishes. */
            deployment?: string;
            /** @description The model's address. A destination of the run: a restricted network must list it. */
            endpoint?: {
                /**
                 * Format: uri
                 * @description An http(s) URL. Default: the provider's own.
                 */
                baseUrl?: string;
                /** @description The API version, where a deployment has several. */
                apiVersion?: string;
                /** @description The region, where a deployment has several. */
                region?: string;
                /** @description Headers to send, where the agent can. */
                headers?: {
                    [key: string]: string;
                };
            };
            /**
             * @description `env`, the default: `credentials` · `runtime_provided`: the agent's own login · `none`.
             * @enum {string}
             */
            credentialMode?: "env" | "runtime_provided" | "none";
            /** @description Variables of the agent's process that are not secret. */
            environment?: {
                [key: string]: string;
            };
            /** @description The credentials. Default: none. */
            credentials?: {
                /** @description Where the value goes. */
                binding: {
                    /**
                     * @description `environment`.
                     * @constant
                     */
                    kind: "environment";
                    /** @description The variable's name, without `=` and NUL. */
                    name: string;
                };
                /** @description The secret, without NUL. */
                value: string;
                /**
                 * @description `opaque_http`, the default: only the provider reads it · `local_use`: a program inside signs with it.
                 * @enum {string}
                 */
                usage?: "opaque_http" | "local_use";
            }[];
            /** @description A secret header of every request to the model, in addition to `credentials`. It stays outside the sandbox: without a model gateway that adds it, the run is refused. */
            gatewayCredentials?: {
                /** @description The header's name. */
                header: string;
                /** @description The secret; one line. */
                value: string;
            };
            /** @description A login for ChatGPT, for Pi, with `credentialMode: "runtime_provided"`. It is in a file of the sandbox, and the receipt names it: under `sandboxPermission.secrets: "hidden"` the run is refused. The token that renews it stays outside, since a renewed login can't be given back to the platform; so one that isn't valid for 10 more minutes is refused. */
            subscription?: Record<string, unknown>;
        };
        /** SandboxPermission */
        SandboxPermission: {
            /** @description The object, or `"on"`, `"off"`, or `"restricted"`, which is the same as `"off"`. */
            network?: ("on" | "off" | "restricted") | {
                /**
                 * @description `on`: no boundary, the host's own loopback is reachable · `off`: nothing is reachable · `allowlist`: only what is listed. Default: `allowlist` where there is a list, else `on`.
                 * @enum {string}
                 */
                mode?: "on" | "off" | "allowlist";
                /** @description `name`, `*.suffix`, `address` or `range/prefix`, each with an optional `:port`; at most 1,000. Empty allows nothing; refused under `on` and `off`. */
                allowlist?: string[];
            };
            /** @description The object, or its mode; `"restricted"` is the same as `"off"`. */
            filesystem?: ("on" | "workspace" | "readonly" | "off" | "restricted") | {
                /**
                 * @description `on`: no boundary · `workspace`: writes succeed only in the workspace and scratch · `readonly`: only in scratch · `off`: there is no workspace. All but `on` hide the host's files.
                 * @enum {string}
                 */
                mode?: "on" | "workspace" | "readonly" | "off";
                /** @description Paths of the workspace that can be read and not written. Paths, not patterns, in all three lists. */
                readable?: string[];
                /** @description The only paths of the workspace that can be written. */
                writable?: string[];
                /** @description Paths of the workspace that can't be accessed, with everything in them. */
                denied?: string[];
            };
            /** @description Limits of the whole session, tools included. Absent: none. */
            resources?: {
                /** @description MiB of memory, file pages of scratch included. */
                memoryMb?: number;
                /** @description Processes and threads at one time. */
                processes?: number;
                /** @description Processor cores; fractions allowed. */
                cpus?: number;
                /** @description MiB of workspace disk. */
                diskMb?: number;
            };
            /**
             * @description `hidden`: no credential of this request can be read in the sandbox. Default: `visible`; the receipt names those that are.
             * @enum {string}
             */
            secrets?: "visible" | "hidden";
            /**
             * @description `strict`, the default: every gap refuses the run. `best_effort` accepts gaps of what acts outside the sandbox, and the receipt names them; it never weakens the sandbox.
             * @enum {string}
             */
            enforcement?: "strict" | "best_effort";
        };
        /** RunResult */
        RunResult: {
            ok: boolean;
            runId: string;
            output?: string;
            messages?: components["schemas"]["ResultMessage"][];
            events: components["schemas"]["AgentEvent"][];
            usage?: {
                input?: number;
                cached?: number;
                cacheWritten?: number;
                output?: number;
                reasoning?: number;
                total?: number;
                cost?: number;
            };
            stopReason?: string;
            capabilities?: {
                textMessages: boolean;
                images: boolean;
                fileAttachments: boolean;
                mcpTools: boolean;
                toolCalls: boolean;
                reasoning: boolean;
                planMode: boolean;
                permissions: boolean;
                usage: boolean;
                streamingDeltas: boolean;
                sessionLifecycle: boolean;
            };
            sessionId?: string;
            model?: string;
            traceId?: string;
            error?: string;
            failure?: components["schemas"]["Failure"];
            errorDetail?: {
                code: string;
                message: string;
                retryable: boolean;
            };
            sandbox?: string;
            warnings?: components["schemas"]["Warning"][];
            receipt?: components["schemas"]["Receipt"];
        };
        /** FailedResult */
        FailedResult: {
            /** @constant */
            ok: false;
            runId?: string;
            output?: string;
            messages?: components["schemas"]["ResultMessage"][];
            events?: components["schemas"]["AgentEvent"][];
            usage?: {
                input?: number;
                cached?: number;
                cacheWritten?: number;
                output?: number;
                reasoning?: number;
                total?: number;
                cost?: number;
            };
            stopReason?: string;
            capabilities?: {
                textMessages: boolean;
                images: boolean;
                fileAttachments: boolean;
                mcpTools: boolean;
                toolCalls: boolean;
                reasoning: boolean;
                planMode: boolean;
                permissions: boolean;
                usage: boolean;
                streamingDeltas: boolean;
                sessionLifecycle: boolean;
            };
            sessionId?: string;
            model?: string;
            traceId?: string;
            error: string;
            failure: components["schemas"]["Failure"];
            errorDetail?: {
                code: string;
                message: string;
                retryable: boolean;
            };
            sandbox?: string;
            warnings?: components["schemas"]["Warning"][];
            receipt?: components["schemas"]["Receipt"];
        };
        /** StreamRecord */
        StreamRecord: {
            /** @constant */
            kind: "event";
            /** Format: date-time */
            at?: string;
            event: components["schemas"]["AgentEvent"];
        } | {
            /** @constant */
            kind: "result";
            result: components["schemas"]["RunResult"] | components["schemas"]["FailedResult"];
        };
        /** AgentEvent */
        AgentEvent: {
            /** @constant */
            type: "turn";
            turnId: string;
        } | {
            /** @constant */
            type: "message";
            text: string;
            parentToolCallId?: string;
        } | {
            /** @constant */
            type: "thought";
            text: string;
            parentToolCallId?: string;
        } | {
            /** @constant */
            type: "message_start";
            id: string;
            parentToolCallId?: string;
        } | {
            /** @constant */
            type: "message_delta";
            id: string;
            delta: string;
        } | {
            /** @constant */
            type: "message_end";
            id: string;
        } | {
            /** @constant */
            type: "thought_start";
            id: string;
            parentToolCallId?: string;
        } | {
            /** @constant */
            type: "thought_delta";
            id: string;
            delta: string;
        } | {
            /** @constant */
            type: "thought_end";
            id: string;
        } | {
            /** @constant */
            type: "tool_call";
            id: string;
            name?: string;
            input?: unknown;
            resumes?: string;
            locations?: {
                path: string;
                line?: number;
            }[];
            render?: {
                kind: string;
            } & {
                [key: string]: unknown;
            };
            parentToolCallId?: string;
        } | {
            /** @constant */
            type: "tool_output";
            id: string;
            delta: string;
        } | {
            /** @constant */
            type: "tool_result";
            id: string;
            output?: unknown;
            data?: unknown;
            changes?: {
                path: string;
                oldText?: string;
                newText?: string;
                omitted?: number;
            }[];
            locations?: {
                path: string;
                line?: number;
            }[];
            isError?: boolean;
            denied?: boolean;
            /** @enum {string} */
            deniedBy?: "policy" | "rule" | "user";
            /** @enum {string} */
            settled?: "denied" | "deferred" | "interrupted" | "unknown";
            movedTo?: string;
            render?: {
                kind: string;
            } & {
                [key: string]: unknown;
            };
        } | {
            /** @constant */
            type: "interaction_request";
            id: string;
            /** @enum {string} */
            kind: "user_approval" | "user_input" | "client_tool";
            payload?: {
                toolCallId?: string;
                toolName?: string;
                server?: string;
                input?: unknown;
                changes?: {
                    path: string;
                    oldText?: string;
                    newText?: string;
                    omitted?: number;
                }[];
                locations?: {
                    path: string;
                    line?: number;
                }[];
                render?: {
                    kind: string;
                } & {
                    [key: string]: unknown;
                };
                expiresAt?: string;
                /** @constant */
                earlierOutcome?: "unknown";
                parentToolCallId?: string;
                approved?: boolean;
                action?: string;
            } & {
                [key: string]: unknown;
            };
        } | {
            /** @constant */
            type: "interaction_response";
            id: string;
            /** @enum {string} */
            kind: "user_approval" | "user_input" | "client_tool";
            payload?: {
                toolCallId?: string;
                toolName?: string;
                server?: string;
                input?: unknown;
                changes?: {
                    path: string;
                    oldText?: string;
                    newText?: string;
                    omitted?: number;
                }[];
                locations?: {
                    path: string;
                    line?: number;
                }[];
                render?: {
                    kind: string;
                } & {
                    [key: string]: unknown;
                };
                expiresAt?: string;
                /** @constant */
                earlierOutcome?: "unknown";
                parentToolCallId?: string;
                approved?: boolean;
                action?: string;
            } & {
                [key: string]: unknown;
            };
        } | {
            /** @constant */
            type: "interaction_expired";
            id: string;
            /** @enum {string} */
            kind: "user_approval" | "user_input" | "client_tool";
        } | {
            /** @constant */
            type: "boundary_decision";
            target: string;
            allowed: boolean;
            reason: string;
            failure?: string;
            count: number;
        } | {
            /** @constant */
            type: "commands";
            commands: {
                name: string;
                description?: string;
                hint?: string;
            }[];
        } | {
            /** @constant */
            type: "mode";
            mode: string;
        } | {
            /** @constant */
            type: "configuration";
            options: {
                id: string;
                name?: string;
                category?: string;
                value: string | boolean;
            }[];
        } | {
            /** @constant */
            type: "data";
            name: string;
            data: unknown;
            transient?: boolean;
            parentToolCallId?: string;
        } | {
            /** @constant */
            type: "file";
            url: string;
            mediaType: string;
            path?: string;
            size?: number;
            sha256?: string;
            parentToolCallId?: string;
        } | {
            /** @constant */
            type: "usage";
            input?: number;
            cached?: number;
            cacheWritten?: number;
            output?: number;
            reasoning?: number;
            total?: number;
            cost?: number;
        } | {
            /** @constant */
            type: "mcp_server_failed";
            serverName: string;
            /** @enum {string} */
            reasonCode: "handshake_unreachable" | "handshake_http_error" | "handshake_rejected" | "handshake_invalid_response";
            status?: number;
            message: string;
        } | {
            /** @constant */
            type: "error";
            message: string;
            code?: string;
            detail?: {
                code: string;
                message: string;
                retryable: boolean;
            };
        } | {
            /** @constant */
            type: "done";
            stopReason?: string;
            traceId?: string;
        };
        /** Receipt */
        Receipt: {
            sandbox: string;
            /** @enum {string} */
            confinement: "confined" | "unconfined";
            /** @enum {string} */
            enforcement: "strict" | "best_effort";
            required: ("network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports")[];
            guarantees: {
                /** @enum {string} */
                capability: "network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports";
                by: string;
                how: string;
                /** @enum {string} */
                basis: "attempted" | "stated";
                provenAt: string;
                warning?: string;
            }[];
            actors: {
                /** @enum {string} */
                kind: "sandbox" | "executor" | "delivery" | "harness" | "toolSource" | "gateway";
                name: string;
                /** @enum {string} */
                site: "sandbox" | "runner" | "caller";
                /** @enum {string} */
                assurance: "guaranteed" | "inherited" | "mediated" | "outside";
                touches: ("network" | "filesystem" | "process" | "environment" | "resources" | "secrets" | "inbound")[];
                subjects?: string[];
            }[];
            accepted: components["schemas"]["Gap"][];
            unaskedTools?: string[];
            visibleCredentials: string[];
            credentials: {
                name: string;
                hosts: string[];
                /** @enum {string} */
                by: "broker" | "route";
            }[];
            evidence: {
                [key: string]: string | number | boolean;
            };
            decisions: {
                allowed: number;
                refused: number;
                failed?: number;
            };
            egress?: {
                proxies: string[];
                /** @enum {string} */
                resolve: "here" | "proxy";
            };
            session: {
                id: string;
                /** @enum {string} */
                history: "new" | "warm" | "loaded" | "replayed";
            };
            sources?: {
                /** @enum {string} */
                type: "files" | "archive" | "git";
                url?: string;
                commit?: string;
                tree?: string;
                submodules?: {
                    path: string;
                    commit: string;
                }[];
                archive?: {
                    bytes: number;
                    sha256: string;
                };
                files: number;
                bytes: number;
                sha256: string;
                omitted?: {
                    path: string;
                    /** @enum {string} */
                    reason: "link" | "special" | "name";
                }[];
            }[];
            environment?: {
                key: string;
                sha256: string;
                bytes: number;
                entries: number;
                /** @enum {string} */
                from: "built" | "cache";
                builtAt: string;
                kept: boolean;
            };
            fork?: {
                snapshot?: string;
                session?: string;
                sha256: string;
                bytes: number;
                entries: number;
            };
            ports?: {
                /** @description The TCP port where a program of the run will listen, on the sandbox's own loopback or on every address of it; 1024 or higher. */
                port: number;
                /** @description Names it in the event `preview`: 1 to 32 of `a-z 0-9 -`. Unique in a request. */
                name: string;
            }[];
            outputs?: {
                files: {
                    path: string;
                    size: number;
                    sha256: string;
                    executable?: boolean;
                }[];
                patch?: {
                    size: number;
                    sha256: string;
                    complete: boolean;
                    changes: ({
                        path: string;
                        size: number;
                        sha256: string;
                        executable?: boolean;
                        /** @constant */
                        change: "added";
                    } | {
                        path: string;
                        size: number;
                        sha256: string;
                        executable?: boolean;
                        /** @constant */
                        change: "modified";
                        before: string;
                    } | {
                        /** @constant */
                        change: "deleted";
                        path: string;
                        before: string;
                    })[];
                };
                git?: {
                    url: string;
                    branch: string;
                    commit: string;
                    base: string;
                    pushed: boolean;
                    signed: boolean;
                    bundle: {
                        size: number;
                        sha256: string;
                    };
                    pullRequest?: {
                        url: string;
                        number: number;
                        opened: boolean;
                    };
                };
                omitted: {
                    path: string;
                    /** @enum {string} */
                    reason: "link" | "hard_link" | "special" | "name" | "changed" | "unreadable" | "too_large" | "too_many";
                }[];
                omittedMore?: number;
            };
            stages?: {
                /** @enum {string} */
                name: "opening" | "filling" | "starting" | "streaming" | "collecting" | "closing" | "model";
                /** Format: date-time */
                at: string;
                durationMs: number;
            }[];
        };
        /** Failure */
        Failure: {
            /** @enum {string} */
            code: "request_invalid" | "unauthorized" | "not_found" | "boundary_refused" | "at_capacity" | "session_in_use" | "command_executed" | "plugin_load_failed" | "plugin_broke_contract" | "sandbox_failed" | "harness_failed" | "model_failed" | "budget_exceeded" | "run_cancelled" | "run_timed_out" | "runner_lost" | "store_failed" | "outputs_failed" | "source_failed" | "snapshot_failed" | "setup_failed" | "session_elsewhere" | "idempotency_key_reused" | "interaction_expired" | "internal";
            retryable: boolean;
            upstreamStatus?: number;
            /** @enum {string} */
            reason?: "invalid" | "digest_mismatch" | "too_large" | "authentication" | "forbidden" | "not_found" | "ref_missing" | "unreachable" | "timed_out" | "program_missing" | "checkout_failed" | "remote_moved" | "push_failed" | "pull_request_failed" | "base_unknown";
            gaps?: components["schemas"]["Gap"][];
            issues?: components["schemas"]["Issue"][];
            address?: string;
        };
        /** Gap */
        Gap: {
            actor: string;
            /** @enum {string} */
            capability: "network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports";
            reason: string;
            fix: string;
            subject?: string;
            requiredBy?: string;
        };
        /** Issue */
        Issue: {
            path: string;
            message: string;
        };
        /** Warning */
        Warning: {
            path?: string;
            message: string;
        };
        /** PlanResponse */
        PlanResponse: {
            /** @constant */
            ok: true;
            plan: {
                sandbox: string;
                /** @enum {string} */
                enforcement: "strict" | "best_effort";
                required: ("network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports")[];
                guarantees: {
                    /** @enum {string} */
                    capability: "network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports";
                    by: string;
                    how: string;
                    /** @enum {string} */
                    basis: "attempted" | "stated";
                    provenAt: string;
                    warning?: string;
                }[];
                actors: {
                    /** @enum {string} */
                    kind: "sandbox" | "executor" | "delivery" | "harness" | "toolSource" | "gateway";
                    name: string;
                    /** @enum {string} */
                    site: "sandbox" | "runner" | "caller";
                    /** @enum {string} */
                    assurance: "guaranteed" | "inherited" | "mediated" | "outside";
                    touches: ("network" | "filesystem" | "process" | "environment" | "resources" | "secrets" | "inbound")[];
                    subjects?: string[];
                }[];
                accepted: components["schemas"]["Gap"][];
            };
            warnings?: components["schemas"]["Warning"][];
        };
        /** OutputFilesResponse */
        OutputFilesResponse: {
            files: {
                path: string;
                size: number;
                sha256: string;
                executable?: boolean;
                url?: string;
            }[];
        };
        /** PluginsResponse */
        PluginsResponse: {
            actors: {
                /** @enum {string} */
                kind: "sandbox" | "executor" | "delivery" | "harness" | "toolSource" | "gateway";
                name: string;
                /** @enum {string} */
                site: "sandbox" | "runner" | "caller";
                plugin: string;
                claims: ("network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports")[];
                findings: ({
                    /** @enum {string} */
                    capability: "network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports";
                    /** @constant */
                    proven: true;
                    how: string;
                    warning?: string;
                } | {
                    /** @enum {string} */
                    capability: "network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports";
                    /** @constant */
                    proven: false;
                    reason: string;
                    fix: string;
                })[];
                /** Format: date-time */
                probedAt: string;
            }[];
        };
        /** HostResponse */
        HostResponse: {
            version: string;
            node: string;
            agents: {
                harness: string;
                title: string;
                comesAlong: boolean;
                installed?: {
                    version: string;
                    tested: string;
                    agent?: {
                        version: string;
                        tested?: string;
                        name: string;
                    };
                };
                installs: {
                    name: string;
                    version: string;
                }[];
            }[];
            rules: {
                name: string;
                requires: string;
                metBy: string[];
                gaps: components["schemas"]["Gap"][];
            }[];
            notices: string[];
            verifications: {
                sandbox: string;
                capabilities: {
                    /** @enum {string} */
                    capability: "network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports";
                    assurance: string;
                    attacks: number;
                    reason?: string;
                    fix?: string;
                    /** Format: date-time */
                    at: string;
                    version: string;
                }[];
            }[];
        };
        /** HealthResponse */
        HealthResponse: {
            /** @constant */
            status: "ok";
            probing: boolean;
            replicaId: string;
        };
        /** ReadyResponse */
        ReadyResponse: {
            /** @enum {string} */
            status: "ready" | "starting" | "unavailable" | "draining" | "stalled";
            /** @enum {string} */
            store: "opening" | "reachable" | "unreachable" | "none";
        };
        /** SubscriptionStatus */
        SubscriptionStatus: {
            /** @constant */
            version: 1;
            harnesses: {
                [key: string]: {
                    /** @constant */
                    state: "not_configured";
                };
            };
        };
        /** SessionFilesResponse */
        SessionFilesResponse: {
            path: string;
            entries: {
                name: string;
                /** @enum {string} */
                kind: "folder" | "file" | "link" | "special";
                size: number;
                /** Format: date-time */
                modifiedAt: string;
                executable: boolean;
            }[];
            complete: boolean;
        };
        /** TerminalRecord */
        TerminalRecord: {
            /** @constant */
            kind: "opened";
            terminalId: string;
        } | {
            /** @constant */
            kind: "output";
            /**
             * Format: base64
             * @description Bytes that the terminal prints, in base64: a character may be cut.
             */
            data: string;
        } | {
            /** @constant */
            kind: "ended";
            /** @description The shell's; null where something else ended it. */
            exitCode: number | null;
            /** @description Why it ended before its shell did. */
            reason?: string;
        };
        /** SnapshotInfo */
        SnapshotInfo: {
            id: string;
            sessionId: string;
            sandbox: string;
            createdAt: string;
            sha256: string;
            bytes: number;
            entries: number;
            skipped: number;
        };
        /** SnapshotsResponse */
        SnapshotsResponse: {
            snapshots: components["schemas"]["SnapshotInfo"][];
        };
        /** EndedResponse */
        EndedResponse: {
            /** @constant */
            ok: true;
            ended: boolean;
            message?: string;
        };
        /** TokenResponse */
        TokenResponse: {
            token: string;
            /** Format: date-time */
            expiresAt: string;
        };
        /** CancelTurnResponse */
        CancelTurnResponse: {
            /** @constant */
            ok: true;
            /** @enum {string} */
            result: "applied" | "obsolete";
            execution: {
                id: string;
                /** @enum {string} */
                state: "stopped" | "not_running" | "superseded_by_newer_turn";
            };
        };
        /** ForwardedResponse */
        ForwardedResponse: {
            /** @constant */
            ok: true;
        };
        /** AcceptedResponse */
        AcceptedResponse: {
            /** @constant */
            ok: true;
            runId: string;
            /** @enum {string} */
            state: "queued" | "running" | "ended";
        };
        /** RunInfo */
        RunInfo: {
            runId: string;
            /** @enum {string} */
            state: "queued" | "running" | "ended";
            harness: string;
            sandbox: string;
            sessionId?: string;
            projectId?: string;
            fence: number;
            events: number;
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            startedAt?: string;
            /** Format: date-time */
            endedAt?: string;
            openQuestions: number;
            /** @enum {string} */
            outcome?: "completed" | "paused" | "cancelled" | "failed";
            summary?: {
                stopReason?: string;
                /** @enum {string} */
                failure?: "request_invalid" | "unauthorized" | "not_found" | "boundary_refused" | "at_capacity" | "session_in_use" | "command_executed" | "plugin_load_failed" | "plugin_broke_contract" | "sandbox_failed" | "harness_failed" | "model_failed" | "budget_exceeded" | "run_cancelled" | "run_timed_out" | "runner_lost" | "store_failed" | "outputs_failed" | "source_failed" | "snapshot_failed" | "setup_failed" | "session_elsewhere" | "idempotency_key_reused" | "interaction_expired" | "internal";
                excerpt?: string;
                model?: string;
                usage?: {
                    input?: number;
                    cached?: number;
                    cacheWritten?: number;
                    output?: number;
                    reasoning?: number;
                    total?: number;
                    cost?: number;
                };
                receipt?: {
                    /** @enum {string} */
                    confinement: "confined" | "unconfined";
                    required: ("network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports")[];
                    accepted: ("network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports")[];
                };
            };
            result?: components["schemas"]["RunResult"];
            deliveries?: {
                id: string;
                /** @enum {string} */
                event: "run.finished" | "run.failed" | "interaction.requested" | "interaction.expired";
                host: string;
                /** @enum {string} */
                state: "pending" | "delivered" | "failed";
                attempts: number;
                status?: number;
                error?: string;
                /** Format: date-time */
                createdAt: string;
                /** Format: date-time */
                dueAt?: string;
            }[];
        };
        /** RunRequestResponse */
        RunRequestResponse: {
            request: {
                [key: string]: unknown;
            };
        };
        /** RunsResponse */
        RunsResponse: {
            runs: {
                runId: string;
                /** @enum {string} */
                state: "queued" | "running" | "ended";
                harness: string;
                sandbox: string;
                sessionId?: string;
                projectId?: string;
                fence: number;
                events: number;
                /** Format: date-time */
                createdAt: string;
                /** Format: date-time */
                startedAt?: string;
                /** Format: date-time */
                endedAt?: string;
                openQuestions: number;
                /** @enum {string} */
                outcome?: "completed" | "paused" | "cancelled" | "failed";
                summary?: {
                    stopReason?: string;
                    /** @enum {string} */
                    failure?: "request_invalid" | "unauthorized" | "not_found" | "boundary_refused" | "at_capacity" | "session_in_use" | "command_executed" | "plugin_load_failed" | "plugin_broke_contract" | "sandbox_failed" | "harness_failed" | "model_failed" | "budget_exceeded" | "run_cancelled" | "run_timed_out" | "runner_lost" | "store_failed" | "outputs_failed" | "source_failed" | "snapshot_failed" | "setup_failed" | "session_elsewhere" | "idempotency_key_reused" | "interaction_expired" | "internal";
                    excerpt?: string;
                    model?: string;
                    usage?: {
                        input?: number;
                        cached?: number;
                        cacheWritten?: number;
                        output?: number;
                        reasoning?: number;
                        total?: number;
                        cost?: number;
                    };
                    receipt?: {
                        /** @enum {string} */
                        confinement: "confined" | "unconfined";
                        required: ("network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports")[];
                        accepted: ("network.deny" | "network.allow-cidr" | "network.allow-host" | "filesystem.read-only" | "filesystem.workspace-only" | "filesystem.none" | "filesystem.host-hidden" | "process.contained" | "environment.named-only" | "environment.per-tool" | "resources.memory" | "resources.processes" | "resources.cpu" | "resources.disk" | "secrets.hidden" | "inbound.ports")[];
                    };
                };
            }[];
        };
        /** SessionsResponse */
        SessionsResponse: {
            sessions: {
                sessionId: string;
                projectId?: string;
                sandbox: string;
                address: string;
                /** Format: date-time */
                createdAt: string;
                /** Format: date-time */
                usedAt: string;
            }[];
        };
        /** InteractionsResponse */
        InteractionsResponse: {
            interactions: {
                id: string;
                runId: string;
                sessionId?: string;
                projectId?: string;
                /** @enum {string} */
                kind: "user_approval" | "user_input" | "client_tool";
                payload: {
                    toolCallId?: string;
                    toolName?: string;
                    server?: string;
                    input?: unknown;
                    changes?: {
                        path: string;
                        oldText?: string;
                        newText?: string;
                        omitted?: number;
                    }[];
                    locations?: {
                        path: string;
                        line?: number;
                    }[];
                    render?: {
                        kind: string;
                    } & {
                        [key: string]: unknown;
                    };
                    expiresAt?: string;
                    /** @constant */
                    earlierOutcome?: "unknown";
                    parentToolCallId?: string;
                    approved?: boolean;
                    action?: string;
                } & {
                    [key: string]: unknown;
                };
                /** @enum {string} */
                state: "open" | "answered" | "claimed" | "used" | "unknown" | "expired" | "withdrawn";
                /** Format: date-time */
                createdAt: string;
                /** Format: date-time */
                answeredAt?: string;
                answeredBy?: {
                    /** @enum {string} */
                    caller: "operator" | "tenant" | "page";
                    user?: string;
                    approved?: boolean;
                };
            }[];
        };
        /** DeliveriesResponse */
        DeliveriesResponse: {
            deliveries: components["schemas"]["StoredDelivery"][];
        };
        /** UsageResponse */
        UsageResponse: {
            /** Format: date */
            from: string;
            /** Format: date */
            to: string;
            /** @enum {string} */
            by: "day" | "project" | "harness" | "model";
            total: {
                runs: {
                    completed: number;
                    paused: number;
                    cancelled: number;
                    failed: number;
                };
                inputTokens: number;
                outputTokens: number;
                usd: number;
                sandboxMs: number;
            };
            groups: {
                runs: {
                    completed: number;
                    paused: number;
                    cancelled: number;
                    failed: number;
                };
                inputTokens: number;
                outputTokens: number;
                usd: number;
                sandboxMs: number;
                key?: string;
            }[];
        };
        /** QuotasResponse */
        QuotasResponse: {
            quotas: {
                projectId: string;
                concurrentRuns?: {
                    limit: number;
                    used: number;
                };
                runsPerMinute?: {
                    limit: number;
                    used: number;
                };
                sessions?: {
                    limit: number;
                    used: number;
                };
                usdPerDay?: {
                    limit: number;
                    used: number;
                    /** Format: date-time */
                    resetsAt: string;
                };
            }[];
        };
        /** StoredDelivery */
        StoredDelivery: {
            id: string;
            /** @enum {string} */
            event: "run.finished" | "run.failed" | "interaction.requested" | "interaction.expired";
            host: string;
            /** @enum {string} */
            state: "pending" | "delivered" | "failed";
            attempts: number;
            status?: number;
            error?: string;
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            dueAt?: string;
            runId: string;
            projectId?: string;
        };
        /** WebhookMessage */
        WebhookMessage: {
            /** @constant */
            type: "run.finished";
            /** Format: date-time */
            timestamp: string;
            data: {
                runId: string;
                sessionId?: string;
                projectId?: string;
                /** @constant */
                truncated?: true;
                output?: string;
                stopReason?: string;
                error?: string;
                failure?: {
                    /** @enum {string} */
                    code: "request_invalid" | "unauthorized" | "not_found" | "boundary_refused" | "at_capacity" | "session_in_use" | "command_executed" | "plugin_load_failed" | "plugin_broke_contract" | "sandbox_failed" | "harness_failed" | "model_failed" | "budget_exceeded" | "run_cancelled" | "run_timed_out" | "runner_lost" | "store_failed" | "outputs_failed" | "source_failed" | "snapshot_failed" | "setup_failed" | "session_elsewhere" | "idempotency_key_reused" | "interaction_expired" | "internal";
                    retryable: boolean;
                };
                usage?: {
                    input?: number;
                    cached?: number;
                    cacheWritten?: number;
                    output?: number;
                    reasoning?: number;
                    total?: number;
                    cost?: number;
                };
                traceId?: string;
            };
        } | {
            /** @constant */
            type: "run.failed";
            /** Format: date-time */
            timestamp: string;
            data: {
                runId: string;
                sessionId?: string;
                projectId?: string;
                /** @constant */
                truncated?: true;
                output?: string;
                stopReason?: string;
                error?: string;
                failure?: {
                    /** @enum {string} */
                    code: "request_invalid" | "unauthorized" | "not_found" | "boundary_refused" | "at_capacity" | "session_in_use" | "command_executed" | "plugin_load_failed" | "plugin_broke_contract" | "sandbox_failed" | "harness_failed" | "model_failed" | "budget_exceeded" | "run_cancelled" | "run_timed_out" | "runner_lost" | "store_failed" | "outputs_failed" | "source_failed" | "snapshot_failed" | "setup_failed" | "session_elsewhere" | "idempotency_key_reused" | "interaction_expired" | "internal";
                    retryable: boolean;
                };
                usage?: {
                    input?: number;
                    cached?: number;
                    cacheWritten?: number;
                    output?: number;
                    reasoning?: number;
                    total?: number;
                    cost?: number;
                };
                traceId?: string;
            };
        } | {
            /** @constant */
            type: "interaction.requested";
            /** Format: date-time */
            timestamp: string;
            data: {
                runId: string;
                sessionId?: string;
                projectId?: string;
                /** @constant */
                truncated?: true;
                interactionId: string;
                /** @enum {string} */
                kind: "user_approval" | "user_input" | "client_tool";
                payload?: {
                    toolCallId?: string;
                    toolName?: string;
                    server?: string;
                    input?: unknown;
                    changes?: {
                        path: string;
                        oldText?: string;
                        newText?: string;
                        omitted?: number;
                    }[];
                    locations?: {
                        path: string;
                        line?: number;
                    }[];
                    render?: {
                        kind: string;
                    } & {
                        [key: string]: unknown;
                    };
                    expiresAt?: string;
                    /** @constant */
                    earlierOutcome?: "unknown";
                    parentToolCallId?: string;
                    approved?: boolean;
                    action?: string;
                } & {
                    [key: string]: unknown;
                };
            };
        } | {
            /** @constant */
            type: "interaction.expired";
            /** Format: date-time */
            timestamp: string;
            data: {
                runId: string;
                sessionId?: string;
                projectId?: string;
                /** @constant */
                truncated?: true;
                interactionId: string;
                /** @enum {string} */
                kind: "user_approval" | "user_input" | "client_tool";
                payload?: {
                    toolCallId?: string;
                    toolName?: string;
                    server?: string;
                    input?: unknown;
                    changes?: {
                        path: string;
                        oldText?: string;
                        newText?: string;
                        omitted?: number;
                    }[];
                    locations?: {
                        path: string;
                        line?: number;
                    }[];
                    render?: {
                        kind: string;
                    } & {
                        [key: string]: unknown;
                    };
                    expiresAt?: string;
                    /** @constant */
                    earlierOutcome?: "unknown";
                    parentToolCallId?: string;
                    approved?: boolean;
                    action?: string;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        /** ResultMessage */
        ResultMessage: {
            /**
             * @description `user`, `assistant`, `system` or `tool`.
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /**
             * @description Text, or a list of blocks. Default: empty.
             * @default
             */
            content: string | components["schemas"]["ResultContentBlock"][];
        };
        /** ResultContentBlock */
        ResultContentBlock: {
            /** @description `text`, `image` and `resource` go to the agent. `tool_call` and `tool_result` record calls. A `file` or `attachment` with its content in `data` or `uri` becomes an `image` or `resource`. `audio` goes to an agent that takes sound. In this turn's messages, any other type is refused, and so is a file or image without content. */
            type: string;
            /** @description The text of a `text` block, or of a resource. */
            text?: string;
            /** @description The content of an `image` or `resource`: base64, or a `data:` URI. */
            data?: string;
            /** @description The media type of `data`. Default: that of a `data:` URI, else `image/png` for an `image`. */
            mimeType?: string;
            /** @description Where a resource is; passed to the agent, not fetched. A `data:` URI is its content. */
            uri?: string;
            /** @description Links a `tool_result` to its `tool_call`. An answer counts only under the id of the `interaction_request` (`ask_…`), after the last text of the user or the last message of the assistant. */
            toolCallId?: string;
            /** @description The tool that was called. */
            toolName?: string;
            /** @description The call's arguments. An answer counts only for a call with the arguments that it was asked about. */
            input?: unknown;
            /** @description The call's result, or `{approved}` where a permission was asked for. */
            output?: unknown;
            /** @description Whether `output` reports a failure. */
            isError?: boolean;
            /** @description An attachment of this turn is in the platform's own store, which Ambit can't reach: send its content as an `image` or `resource` block. In earlier messages, and beside its content, it is ignored. */
            attachmentId?: string;
            /** @description The name of an attachment or resource. */
            filename?: string;
            /** @description The size of an attachment, in bytes. */
            size?: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    webhook: {
        parameters: {
            query?: never;
            header: {
                /** @description Names the message: the same with each attempt. */
                "webhook-id": string;
                /** @description When the attempt began, in seconds since the epoch. */
                "webhook-timestamp": string;
                /** @description `v1,` and a signature, for each secret of the server. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookMessage"];
            };
        };
        responses: {
            /** @description The message was received. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
