// Package signs is the part that signs what users decide with a key of Cloud KMS. Every function that records decisions
// has it. All other functions have only the public keys.
package signs

import (
	"context"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/kmskey"
)

// Part signs with DECISION_KMS_KEY. With Firestore and without keys, it logs a warning.
var Part = With()

// With returns the part with options for the client of Cloud KMS.
func With(opts ...option.ClientOption) app.Part {
	return app.Part{Name: "decisions", Open: func(ctx context.Context, b *app.Builder) error {
		switch cfg := b.Config; {
		case b.Env.Decisions == nil && cfg.Store != "embedded":
			b.Log.Warn("decisions are not signed, so anyone who can write to the database can approve actions; set "+
				"DECISION_KMS_KEY and DECISION_PUBLIC_KEYS", "page", "shared/agent/decision/README.md")
			return nil
		case b.Env.Decisions == nil || cfg.DecisionKMSKey == "":
			return nil
		}
		key, err := Open(ctx, b.Config.DecisionKMSKey, opts...)
		if err != nil {
			return err
		}
		b.Closes(key)
		b.Env.Decisions = b.Env.Decisions.With(key)
		return nil
	}}
}

// Key is a key of Cloud KMS as a [decision.Signer].
type Key struct{ *kmskey.Key }

// Open returns the key version of this name.
func Open(ctx context.Context, version string, opts ...option.ClientOption) (Key, error) {
	key, err := kmskey.Open(ctx, version, opts...)
	return Key{key}, err
}

// ID returns the thumbprint of the public key.
func (s Key) ID(ctx context.Context) (string, error) {
	public, err := s.Public(ctx)
	if err != nil {
		return "", err
	}
	return decision.KeyID(public), nil
}
