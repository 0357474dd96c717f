// Package seed fixes the random choices of property tests, so that a commit is tested the same way each time. A search
// for new inputs sets another seed.
package seed

import (
	"flag"
	"fmt"
	"testing"
)

// Fixed is the seed of each property test of pgregory.net/rapid, which derives the seeds of a test's trials from it; go
// test -v prints it. -rapid.seed or RAPID_SEED sets another seed, and -rapid.seed 0 draws a random one.
const Fixed = "1"

// name is the name of rapid's flag, which exists if a package's tests import rapid.
const name = "rapid.seed"

// Fix parses the flags, and sets the seed to Fixed unless the command or the environment sets one. It is for TestMain;
// leaktest.Main calls it.
func Fix() {
	if !flag.Parsed() {
		flag.Parse()
	}
	if fix(flag.CommandLine) && testing.Verbose() {
		fmt.Printf("-%s %s\n", name, Fixed)
	}
}

// fix reports whether it has set the seed.
func fix(flags *flag.FlagSet) bool {
	f := flags.Lookup(name)
	if f == nil || f.Value.String() != "0" { // the environment's is the flag's default
		return false
	}
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return !given && flags.Set(name, Fixed) == nil
}
