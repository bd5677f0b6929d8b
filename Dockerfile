# syntax=docker/dockerfile:1

# The compiler's binary is for glibc; what it writes runs anywhere.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY src ./src
COPY web ./web
RUN node scripts/build.js

# Without the embedded PostgreSQL, which is an optional dependency: a container needs a DATABASE_URL and says so.
FROM node:24-alpine AS modules
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund
# For locks by Kubernetes Leases, and for sources and sinks; others need them not.
RUN npm install --no-save --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund @kubernetes/client-node@2.0.1 @platformatic/kafka@2.12.1 amqplib@2.3.1 ioredis@6.0.0

FROM node:24-alpine
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8420 CARILLON_HOME=/var/lib/carillon
# The root file system may be read-only. CARILLON_HOME is written to only by the provider `file`.
RUN mkdir -p /var/lib/carillon && chown node:node /var/lib/carillon
COPY package.json LICENSE ./
COPY migrations ./migrations
COPY --from=modules /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# By number, so that runAsNonRoot can see that it is not root.
USER 1000:1000
EXPOSE 8420
CMD ["node", "dist/cli/carillon.js", "start"]
