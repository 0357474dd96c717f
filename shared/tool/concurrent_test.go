package tool_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// One tool serves all requests of a process at once: what is wrong with one call's arguments is nobody else's matter.
// What two calls share, the race detector names.
func TestCallsAtOnceDoNotMeet(t *testing.T) {
	type in struct {
		N int `json:"n"`
	}
	tl := tool.Define(tool.Def[in, struct{}]{Name: "even", Description: "Takes even numbers.", Normalize: func(v in) (in, error) {
		if v.N%2 == 1 {
			return v, fault.Invalid("n", "it is odd")
		}
		return v, nil
	}})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			args := json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
			for range 200 {
				if got, err := tl.Normalize(args); (err != nil) != (i%2 == 1) {
					t.Errorf("%s gives %s, %v", args, got, err)
					return
				}
			}
		})
	}
	all.Wait()
}
