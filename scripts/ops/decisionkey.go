package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/base/kmskey"
)

// signingKey is a key of Cloud KMS whose public half all functions have.
type signingKey struct {
	kms, public string // names of the settings
	local       string // how to replace the key of the embedded store
}

var signingKeys = map[string]signingKey{
	"decision-key": {"DECISION_KMS_KEY", "DECISION_PUBLIC_KEYS", "remove decision-key from DATA_DIR and start the " +
		"server: it creates another key, and asks again about earlier permissions"},
	"enrolment-key": {"ENROLMENT_KMS_KEY", "ENROLMENT_PUBLIC_KEYS", "remove enrolment-key from DATA_DIR and start " +
		"the server: it creates another key, and users add their passkeys again"},
}

// next returns the next list of public keys: the public half of the version that signs, and the present keys unless
// retire is set. The first time, there are none.
func (k signingKey) next(ctx context.Context, getenv func(string) string, retire bool, opts ...option.ClientOption) (
	next string, err error) {
	version, held := getenv(k.kms), getenv(k.public)
	if version == "" {
		return "", fmt.Errorf("%s is not set. With the embedded store, %s", k.kms, k.local)
	}
	key, err := kmskey.Open(ctx, version, opts...)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, key.Close()) }()
	public, err := key.Public(ctx)
	if err != nil {
		return "", err
	}
	keys := map[string]ed25519.PublicKey{}
	if held != "" {
		if keys, err = decision.ParseKeys(held); err != nil {
			return "", fmt.Errorf("%s: %w", k.public, err)
		}
	}
	if _, had := keys[decision.KeyID(public)]; retire && !had {
		return "", fmt.Errorf("%s lacks the key of %s: rotate first, and deploy the result", k.public, k.kms)
	}
	if retire {
		keys = nil
	}
	next, err = formatKeys(public, keys)
	if err != nil {
		return "", fmt.Errorf("%s %w", k.public, err)
	}
	return next, nil
}

// formatKeys returns a list of public keys, with the key first at its beginning.
func formatKeys(first ed25519.PublicKey, others map[string]ed25519.PublicKey) (string, error) {
	text, err := decision.FormatKey(first)
	if err != nil {
		return "", err
	}
	list := []string{text}
	for _, id := range slices.Sorted(maps.Keys(others)) {
		if id == decision.KeyID(first) {
			continue
		}
		if text, err = decision.FormatKey(others[id]); err != nil {
			return "", err
		}
		list = append(list, text)
	}
	if len(list) > decision.MaxKeys {
		return "", fmt.Errorf("would have %d keys; the limit is %d", len(list), decision.MaxKeys)
	}
	return strings.Join(list, ","), nil
}
