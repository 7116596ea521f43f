#!/usr/bin/env bash
# build.sh OUT: build the Kubernetes provider. On two cores: 10 to 20 minutes with nothing cached.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")"
module=github.com/pulumi/pulumi-kubernetes/provider/v4
go mod download "$module"
files=$(go list -m -f '{{.Dir}}' "$module")/cmd/pulumi-resource-kubernetes
# Built in a folder of its own: the embedded files are 8 MB, and a checkout may be read-only.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp go.mod go.sum main.go "$files/schema.json" "$files/terraform-mapping.json" "$work"
cd "$work"
# Pulumi warns at each update of a provider that is older than the program's SDK, and a module's pseudo-version is: so it
# goes by the number of the SDK in requirements.lock, and by the commit that it is really made from.
commit=$(awk -v module="$module" '$0 ~ module {sub(/.*-/, ""); print; exit}' go.mod)
CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -v -p 2 -trimpath -mod=readonly -o "$out" \
  -ldflags "-s -w -X main.version=4.34.2+$commit" .
