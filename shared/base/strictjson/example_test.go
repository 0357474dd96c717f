package strictjson_test

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Input that could be read in two ways is refused, and the error names the field.
func ExampleDecode() {
	var body struct {
		Prompt string `json:"prompt"`
	}
	for _, text := range []string{`{"prompt":"hello"}`, `{"prompt":"hello","Prompt":"or this"}`,
		`{"prompt":"hello","prompt":"or this"}`, `{"prompt":"hello"} {}`} {
		err := strictjson.Decode([]byte(text), &body)
		fmt.Println(body.Prompt, err)
	}
	// Output:
	// hello <nil>
	// hello ValidationError invalid (Prompt): unknown field
	// hello ValidationError invalid (prompt): duplicate key
	// hello ValidationError invalid: unexpected data after the JSON object
}

// The canonical form (RFC 8785) is the same for every writer of the object. It is the form that is hashed and approved.
func ExampleCanonical() {
	for _, text := range []string{`{"to": ["ana"], "n": 1.0}`, `{"n":1,"to":["\u0061na"]}`} {
		canonical, err := strictjson.Canonical([]byte(text))
		fmt.Println(string(canonical), err)
	}
	// Output:
	// {"n":1,"to":["ana"]} <nil>
	// {"n":1,"to":["ana"]} <nil>
}
