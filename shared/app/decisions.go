package app

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/config/strongfile"
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
		key, err := decision.Local(cfg.DataDir, decision.File)
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

// EnrolmentFile is the name of the key in DATA_DIR that signs passkeys.
const EnrolmentFile = "enrolment-key"

// OpenStrong returns which decisions need a passkey, and the keys that check passkeys: those of ENROLMENT_PUBLIC_KEYS,
// or else that of a key in DATA_DIR, which also signs. It returns nil if no decision needs one. Package enrols adds the
// key of Cloud KMS.
func OpenStrong(cfg config.Config) (*passkey.Strong, error) {
	if cfg.StrongApproval == "" {
		return nil, nil
	}
	file, err := strongfile.Load(cfg.StrongApproval)
	if err != nil {
		return nil, fmt.Errorf("STRONG_APPROVAL: %w", err)
	}
	console, err := url.Parse(cfg.ConsoleURL)
	if err != nil {
		return nil, fmt.Errorf("CONSOLE_URL: %w", err)
	}
	host := console.Hostname()
	s := &passkey.Strong{Rules: file.Rules, Site: passkey.Site{ID: cmp.Or(file.Site, host),
		Origin: console.Scheme + "://" + console.Host, Console: cfg.ConsoleURL}}
	if s.Site.ID != host && !strings.HasSuffix(host, "."+s.Site.ID) {
		return nil, fmt.Errorf("STRONG_APPROVAL: site is %q; it must be %s, the console's host, or a domain above it",
			s.Site.ID, host)
	}
	if cfg.EnrolmentPublicKeys != "" {
		keys, err := decision.ParseKeys(cfg.EnrolmentPublicKeys)
		if err != nil {
			return nil, fmt.Errorf("ENROLMENT_PUBLIC_KEYS: %w", err)
		}
		s.Keys = decision.NewRing(cfg.Project, keys, nil)
	} else {
		key, err := decision.Local(cfg.DataDir, EnrolmentFile)
		if err != nil {
			return nil, err
		}
		s.Keys = key.Ring("")
	}
	s.Keys = s.Keys.For(passkey.EnrolmentDomain)
	return s, nil
}
