# Node's toolchain with npm for the containers of plans. README.md says how to build it.
ARG BASE=docker.io/library/node:24-slim
ARG GO=docker.io/library/golang:1.26-alpine

FROM ${GO} AS outlet
WORKDIR /src
COPY go.mod go.sum ./
COPY shared/tools/container/outlet shared/tools/container/outlet
COPY infra/images/outlet infra/images/outlet
RUN CGO_ENABLED=0 GOPROXY=off go build -trimpath -ldflags=-s -o /countersign-outlet ./infra/images/outlet

FROM ${BASE}
ENV npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
RUN mkdir /deps && chown 1000:1000 /deps
COPY --from=outlet /countersign-outlet /usr/local/bin/countersign-outlet
USER 1000:1000
