// Command prove runs a test program that checks one of Countersign's guarantees:
//
//	go run ./scripts/prove NAME [flags]
//
// Without a name it lists the proofs. NAME -h describes a proof and how long it takes.
package main

import (
	"os"

	"github.com/countersign-run/countersign/scripts/prove/contents"
	"github.com/countersign-run/countersign/scripts/prove/crash"
	"github.com/countersign-run/countersign/scripts/prove/flaky"
	"github.com/countersign-run/countersign/scripts/prove/forge"
	"github.com/countersign-run/countersign/scripts/prove/fuzz"
	"github.com/countersign-run/countersign/scripts/prove/gauntlet"
	"github.com/countersign-run/countersign/scripts/prove/hijack"
	"github.com/countersign-run/countersign/scripts/prove/hostile"
	"github.com/countersign-run/countersign/scripts/prove/load"
	"github.com/countersign-run/countersign/scripts/prove/mutate"
	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/scripts/prove/skips"
)

// proofs lists all proofs, in the order of the guarantees. The last one reports the tests that were skipped.
var proofs = []proof.Proof{
	hijack.Proof(), forge.Proof(), crash.Proof(), hostile.Proof(), gauntlet.Proof(), contents.Proof(), load.Proof(),
	mutate.Proof(), fuzz.Proof(), flaky.Proof(), skips.Proof(),
}

func main() { os.Exit(proof.Main(os.Args[1:], os.Stdout, os.Stderr, proofs...)) }
