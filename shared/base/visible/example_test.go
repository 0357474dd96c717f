package visible_test

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/base/visible"
)

// A reader sees what the machine will act on.
func ExampleLine() {
	shown, hidden := visible.Line("Pay \u202eanA not \u200bBob")
	fmt.Println(shown, hidden)
	fmt.Println(visible.Suspicious("log in to p\u0430ypal"))
	// Output:
	// Pay ⟨U+202E⟩anA not ⟨U+200B⟩Bob true
	// [The word “pаypal” mixes Latin and Cyrillic letters.]
}
