# Python with pip for the containers of plans. README.md says how to build it.
ARG BASE=docker.io/library/python:3.14-slim
ARG GO=docker.io/library/golang:1.26-alpine

FROM ${GO} AS outlet
WORKDIR /src
COPY go.mod go.sum ./
COPY shared/tools/container/outlet shared/tools/container/outlet
COPY infra/images/outlet infra/images/outlet
RUN CGO_ENABLED=0 GOPROXY=off go build -trimpath -ldflags=-s -o /countersign-outlet ./infra/images/outlet

FROM ${BASE}
ENV PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN mkdir /deps && chown 1000:1000 /deps
COPY --from=outlet /countersign-outlet /usr/local/bin/countersign-outlet
USER 1000:1000
