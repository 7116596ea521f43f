#!/usr/bin/env bash
# Write go.mod and go.sum for one version of the provider. Run once a version bump, and commit both files.
set -euo pipefail
cd "$(dirname "$0")"
provider=${1:-v4.0.0-20260115033456-f47bc2d6f199}
{
  printf 'module nodewright.dev/tools/kubernetes-provider\n\ngo 1.26.0\n\n'
  printf 'require github.com/pulumi/pulumi-kubernetes/provider/v4 %s\n' "$provider"
} >go.mod
go mod tidy
