# Ambit in a container. `docker compose up` builds it; docs/deploy.md says what each flag is for.
#
#   BASE_IMAGE  a Debian with Node 22.19 or newer. It may have bubblewrap, git and python3 already
#   PACKAGES    build: compiles this folder. prebuilt: takes what `node scripts/packages/install-packages.mjs .cache/container`
#               made, without a network
#   AGENTS      npm packages of agents, such as "@google/gemini-cli @agentclientprotocol/codex-acp". Default: none
ARG BASE_IMAGE=node:24-bookworm-slim
ARG PACKAGES=build

FROM ${BASE_IMAGE} AS base
RUN command -v bwrap && command -v git && command -v python3 \
    || { apt-get update && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git python3 \
         && rm -rf /var/lib/apt/lists/*; }

FROM base AS build
ARG PACKAGES
COPY . /source
WORKDIR /source
# Docker's builder before BuildKit runs this stage even where `prebuilt` is chosen.
RUN if [ "$PACKAGES" = prebuilt ]; then mkdir /packages; \
    else npm ci --ignore-scripts && npm run build && node scripts/packages/install-packages.mjs /packages; fi

FROM base AS prebuilt
# Docker's builder before BuildKit runs this stage even where `build` is chosen: then the folder may be missing.
COPY package.json .cache/containe[r] /packages/

FROM ${PACKAGES} AS packages

FROM base
ARG AGENTS=""
# Where Ambit's packages below find them.
RUN [ -z "$AGENTS" ] || npm install --prefix /opt --no-audit --no-fund $AGENTS
COPY --from=packages /packages /opt/ambit
RUN [ -d /opt/ambit/node_modules/ambit ] \
    || { echo ".cache/container is missing: run node scripts/packages/install-packages.mjs .cache/container" >&2; exit 1; }
COPY deploy/postgres.config.mjs /opt/ambit/
# An account without a login, and the folder for sessions, which a new volume takes over with its owner.
RUN echo "ambit:x:10001:10001::/var/lib/ambit:/usr/sbin/nologin" >> /etc/passwd \
    && echo "ambit:x:10001:" >> /etc/group \
    && install --directory --owner=10001 --group=10001 --mode=0711 /var/lib/ambit
USER 10001:10001
WORKDIR /opt/ambit
# Sessions are below $XDG_STATE_HOME/ambit. AMBIT_TOKEN has no default: without it, nothing listens beyond loopback.
# The health check has a port of its own, which no caller can keep busy.
ENV AMBIT_HOST=0.0.0.0 AMBIT_HEALTH_PORT=8766 XDG_STATE_HOME=/var/lib XDG_CACHE_HOME=/tmp NODE_ENV=production
VOLUME /var/lib/ambit
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.AMBIT_HEALTH_PORT || process.env.AMBIT_PORT || 8765}/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/opt/ambit/node_modules/ambit/bin/ambit.mjs"]
CMD ["serve"]
