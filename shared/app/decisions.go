package app

import (
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/config"
)

// openDecisions returns the keys that sign and check decisions. With the embedded store, it is a key in DATA_DIR, which
// is created on first use. Other programs have none.
func openDecisions(cfg config.Config) (*decision.Ring, error) {
	if cfg.Store != "embedded" {
		return nil, nil
	}
	key, err := decision.Local(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	return key.Ring(""), nil
}
