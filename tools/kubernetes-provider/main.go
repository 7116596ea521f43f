// Command pulumi-resource-kubernetes is Pulumi's Kubernetes provider. The module that holds it does not build its own
// command, since that embeds files which only its release makes; the library part is whole, and the two files that it
// wants are in the module under other names. build.sh puts them beside this file.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

// version is set by build.sh.
var version = "0.0.0"

func main() {
	provider.Serve("kubernetes", version, schema, terraformMapping)
}
