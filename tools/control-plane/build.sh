#!/usr/bin/env bash
# build.sh OUT: build the control plane. On two cores: 10 to 20 minutes with nothing cached, 15 seconds after.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")"
version=$(awk '$1 == "k8s.io/kubernetes" {print $2; exit}' go.mod)
minor=${version#v1.}
minor=${minor%%.*}
stamp=k8s.io/component-base/version
# Without the stamp the server's version cannot be parsed by its clients.
CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -v -p 2 -trimpath -mod=readonly -o "$out" -ldflags "-s -w \
 -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor -X $stamp.gitCommit=unknown \
 -X $stamp.gitTreeState=clean -X $stamp.buildDate=1970-01-01T00:00:00Z" .
