package audit_test

import (
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/store/audit"
)

// Each entry is sealed behind the one before, and the head tells where the chain ends.
func ExampleVerify() {
	var head audit.Head
	var chain []audit.Entry
	for _, what := range []string{audit.Requested, audit.Intent} {
		var e audit.Entry
		e, head = audit.Seal(head, audit.Entry{RunID: "run-1", UID: "ana", Kind: what,
			At: time.Date(2027, 1, 5, 10, 0, 0, 0, time.UTC)})
		chain = append(chain, e)
	}
	fmt.Println("as it was written:", audit.Verify(chain, head))
	chain[0].UID = "bob"
	for _, f := range audit.Verify(chain, head) {
		fmt.Println("with another user:", f)
	}
	for _, f := range audit.Verify(chain[1:], head) {
		fmt.Println("without the first:", f)
	}
	// Output:
	// as it was written: []
	// with another user: entry 1 was changed
	// without the first: entry 1 was removed
}
