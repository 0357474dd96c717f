package tool_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// TestConcurrentCalls checks that concurrent calls of one tool do not affect each other: wrong arguments fail only
// their own call. The race detector reports shared state.
func TestConcurrentCalls(t *testing.T) {
	type in struct {
		N int `json:"n"`
	}
	tl := tool.Define(tool.Def[in, struct{}]{Name: "even", Description: "Takes even numbers.",
		Normalize: func(v in) (in, error) {
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
					t.Errorf("Normalize(%s) = %s, %v", args, got, err)
					return
				}
			}
		})
	}
	all.Wait()
}
