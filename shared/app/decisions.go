package app

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/config"
)

// openDecisions returns the public keys that check decisions: those of DECISION_PUBLIC_KEYS, or else that of a key in
// DATA_DIR, which also signs and is created on first use. It returns nil if decisions are not signed. Package signs
// adds the key of Cloud KMS.
func openDecisions(cfg config.Config) (ring *decision.Ring, err error) {
	switch {
	case cfg.Decisions == "off":
		return nil, nil
	case cfg.DecisionPublicKeys != "":
		keys, err := decision.ParseKeys(cfg.DecisionPublicKeys)
		if err != nil {
			return nil, fmt.Errorf("DECISION_PUBLIC_KEYS: %w", err)
		}
		// the database's name changes when a backup is restored
		ring = decision.NewRing(cfg.Project, keys, nil)
	default:
		key, err := decision.Local(cfg.DataDir)
		if err != nil {
			return nil, err
		}
		ring = key.Ring("")
	}
	if cfg.Decisions == "sign" {
		ring = ring.Lenient()
	}
	return ring, nil
}
