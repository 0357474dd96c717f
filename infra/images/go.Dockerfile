# Go's toolchain for the containers of plans. README.md says how to build it.
ARG BASE=docker.io/library/golang:1.26-alpine

FROM ${BASE} AS outlet
WORKDIR /src
COPY go.mod go.sum ./
COPY shared/tools/container/outlet shared/tools/container/outlet
COPY infra/images/outlet infra/images/outlet
RUN CGO_ENABLED=0 GOPROXY=off go build -trimpath -ldflags=-s -o /countersign-outlet ./infra/images/outlet

FROM ${BASE}
ENV GOTOOLCHAIN=local GOTELEMETRY=off CGO_ENABLED=0
RUN mkdir /deps && chown 1000:1000 /deps
COPY --from=outlet /countersign-outlet /usr/local/bin/countersign-outlet
USER 1000:1000
