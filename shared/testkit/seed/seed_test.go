package seed

import (
	"flag"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { Fix(); m.Run() }

// TestFix checks that Fix keeps a seed that the command sets, and the request for a random one.
func TestFix(t *testing.T) {
	for name, c := range map[string]struct {
		environment uint64
		args        []string
		want        string
	}{
		"none": {0, nil, Fixed}, "the command's": {0, []string{"-rapid.seed", "7"}, "7"},
		"one to draw": {0, []string{"-rapid.seed", "0"}, "0"}, "the environment's": {9, nil, "9"},
	} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.Uint64("rapid.seed", c.environment, "")
		if err := flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		fix(flags)
		if got := flags.Lookup("rapid.seed").Value.String(); got != c.want {
			t.Errorf("%s: the seed is %s, want %s", name, got, c.want)
		}
	}
	if fix(flag.NewFlagSet("", flag.ContinueOnError)) {
		t.Error("it sets a flag that is not there")
	}
}

// TestRepeatedSeed checks that the same seed draws the same values.
func TestRepeatedSeed(t *testing.T) {
	if f := flag.Lookup("rapid.seed"); f.Value.String() != Fixed {
		t.Skipf("-rapid.seed is %s", f.Value)
	}
	drawn := func() (all []string) {
		rapid.Check(t, func(t *rapid.T) {
			all = append(all, fmt.Sprint(rapid.MapOf(rapid.String(), rapid.Int()).Draw(t, "m")))
		})
		return all
	}
	if first, again := fmt.Sprint(drawn()), fmt.Sprint(drawn()); first != again {
		t.Errorf("the first trials are\n%s\nand then\n%s", first, again)
	}
}
