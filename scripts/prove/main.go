// Command prove runs a proof of what Countersign promises:
//
//	go run ./scripts/prove NAME [flags]
//
// Without a name it lists the proofs; NAME -h says what one tries and how long that takes.
package main

import (
	"os"

	"github.com/countersign-run/countersign/scripts/prove/contents"
	"github.com/countersign-run/countersign/scripts/prove/crash"
	"github.com/countersign-run/countersign/scripts/prove/flaky"
	"github.com/countersign-run/countersign/scripts/prove/fuzz"
	"github.com/countersign-run/countersign/scripts/prove/gauntlet"
	"github.com/countersign-run/countersign/scripts/prove/hijack"
	"github.com/countersign-run/countersign/scripts/prove/hostile"
	"github.com/countersign-run/countersign/scripts/prove/load"
	"github.com/countersign-run/countersign/scripts/prove/mutate"
	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/scripts/prove/skips"
)

// proofs are all, in the order of the promises that they are for, and last what says what is not proven here.
var proofs = []proof.Proof{
	hijack.Proof(), crash.Proof(), hostile.Proof(), gauntlet.Proof(), contents.Proof(), load.Proof(), mutate.Proof(),
	fuzz.Proof(), flaky.Proof(), skips.Proof(),
}

func main() { os.Exit(proof.Main(os.Args[1:], os.Stdout, os.Stderr, proofs...)) }
