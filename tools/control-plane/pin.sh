#!/usr/bin/env bash
# Write go.mod and go.sum for one Kubernetes version. Run once a version bump, and commit both files.
#
# k8s.io/kubernetes requires its staging modules at v0.0.0 and replaces them by folders of its own repository. A
# module that depends on it does not inherit those replacements, so each is repeated here at the matching version.
set -euo pipefail
cd "$(dirname "$0")"
kubernetes=${1:-1.37.2}
kwok=${2:-0.8.0}
staging=v0.${kubernetes#1.}
upstream=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | python3 -c 'import json, sys; print(json.load(sys.stdin)["GoMod"])')
{
  printf 'module nodewright.dev/tools/control-plane\n\ngo 1.26.0\n\n'
  printf 'require (\n\tk8s.io/kubernetes v%s\n\tsigs.k8s.io/kwok v%s\n)\n\nreplace (\n' "$kubernetes" "$kwok"
  awk -v staging="$staging" '/^replace \(/{inside=1;next} inside&&/^\)/{exit} inside{print "\t" $1 " => " $1 " " staging}' "$upstream"
  echo ')'
} >go.mod
go mod tidy
