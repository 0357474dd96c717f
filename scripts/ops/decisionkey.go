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

// decisionKeys returns the next DECISION_PUBLIC_KEYS: the public half of the version that DECISION_KMS_KEY names, and
// the present keys unless retire is set. The first time, there are none.
func decisionKeys(ctx context.Context, getenv func(string) string, retire bool, opts ...option.ClientOption) (
	next string, err error) {
	version, held := getenv("DECISION_KMS_KEY"), getenv("DECISION_PUBLIC_KEYS")
	if version == "" {
		return "", errors.New("DECISION_KMS_KEY is not set. With the embedded store, remove decision-key from " +
			"DATA_DIR and start the server: it creates another key, and asks again about earlier permissions")
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
			return "", fmt.Errorf("DECISION_PUBLIC_KEYS: %w", err)
		}
	}
	if _, had := keys[decision.KeyID(public)]; retire && !had {
		return "", errors.New("DECISION_PUBLIC_KEYS lacks the key of DECISION_KMS_KEY: rotate first, and deploy " +
			"the result")
	}
	if retire {
		keys = nil
	}
	return formatKeys(public, keys)
}

// formatKeys returns the keys in the form of DECISION_PUBLIC_KEYS, with the key first at its beginning.
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
		return "", fmt.Errorf("DECISION_PUBLIC_KEYS would have %d keys; the limit is %d", len(list),
			decision.MaxKeys)
	}
	return strings.Join(list, ","), nil
}
