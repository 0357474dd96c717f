package countersign

import (
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// maxDecisionKeys limits Options.DecisionKeys.
const maxDecisionKeys = 4

// decisions returns the keys that sign and check decisions, or nil if there are none.
func decisions(seeds [][]byte) (*decision.Ring, error) {
	if len(seeds) > maxDecisionKeys {
		return nil, fault.Invalid("DecisionKeys", "%d keys; the limit is %d", len(seeds), maxDecisionKeys)
	}
	var keys []decision.Key
	for i, seed := range seeds {
		key, err := decision.NewKey(seed)
		if err != nil {
			return nil, fault.Invalid("DecisionKeys", "key %d has %d bytes; 32 are needed", i+1, len(seed)).Because(err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return keys[0].Ring("", keys[1:]...), nil
}
