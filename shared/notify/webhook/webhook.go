// Package webhook sends notifications to the operator's endpoints: HTTP requests that are signed as Standard Webhooks
// specifies (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
package webhook

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/notify/event"
)

// Limits of a file.
const (
	MaxFile  = 64 << 10 // bytes
	maxHooks = 20
	maxKeys  = 2 // the second one is for a rotation

	minKey, maxKey = 24, 64 // bytes, as Standard Webhooks recommends
)

// A Hook is an endpoint, with the types of notifications that it receives and its signing keys.
type Hook struct {
	// Name has 1 to 32 lower-case letters, digits and hyphens. It is also part of a subscription's name.
	Name  string       `json:"name"`
	URL   string       `json:"url"`
	Types []event.Type `json:"types,omitempty"` // none: all

	keys [][]byte
}

// Wants reports whether the endpoint receives notifications of this type.
func (h Hook) Wants(t event.Type) bool { return len(h.Types) == 0 || slices.Contains(h.Types, t) }

// Hooks are endpoints with different names.
type Hooks []Hook

// Named returns the endpoint with the name, and whether it exists.
func (all Hooks) Named(name string) (Hook, bool) {
	i := slices.IndexFunc(all, func(h Hook) bool { return h.Name == name })
	if i < 0 {
		return Hook{}, false
	}
	return all[i], true
}

var named = lazyregexp.New(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$`)

// IsName reports whether the name is valid for an endpoint.
func IsName(name string) bool { return named.MatchString(name) }

// Parse parses a file {"webhooks":[{"name","url","types"}]} and the keys of its endpoints. keys is a JSON object that
// maps the endpoints' names to lists of keys, such as {"crm":["whsec_…"]}. Every endpoint has one key, or two during a
// rotation. All errors are ValidationErrors that name the field and never contain a key.
func Parse(file, keys []byte) (Hooks, error) {
	var f struct {
		Webhooks Hooks `json:"webhooks"`
	}
	if len(file) > MaxFile {
		return nil, fault.Invalid("webhooks", "%d bytes; the limit is %d", len(file), MaxFile)
	}
	if err := strictjson.Decode(file, &f); err != nil {
		return nil, err
	}
	if len(f.Webhooks) == 0 || len(f.Webhooks) > maxHooks {
		return nil, fault.Invalid("webhooks", "%d webhooks; 1 to %d are allowed", len(f.Webhooks), maxHooks)
	}
	secrets := map[string][]string{}
	if err := strictjson.Decode(keys, &secrets); err != nil {
		return nil, fault.Invalid("keys", `expected a JSON object such as {"crm":["whsec_…"]}`)
	}
	for i, h := range f.Webhooks {
		if err := h.check(fmt.Sprintf("webhooks/%d", i), f.Webhooks[:i]); err != nil {
			return nil, err
		}
		decoded, err := decodeKeys(h.Name, secrets[h.Name])
		if err != nil {
			return nil, err
		}
		f.Webhooks[i].keys = decoded
	}
	for name := range secrets {
		if _, known := f.Webhooks.Named(name); !known {
			return nil, fault.Invalid("keys/"+name, "no webhook has this name")
		}
	}
	return f.Webhooks, nil
}

func (h Hook) check(at string, before Hooks) error {
	u, err := url.Parse(h.URL)
	_, again := before.Named(h.Name)
	switch {
	case !IsName(h.Name):
		return fault.Invalid(at+"/name", "a name must have 1 to 32 lower-case letters, digits and hyphens")
	case again:
		return fault.Invalid(at+"/name", "two webhooks have the name %s", h.Name)
	case err != nil || !outbound.Secure(u) || u.Fragment != "":
		return fault.Invalid(at+"/url", "expected an address with https (http only on a loopback address), without "+
			"credentials")
	}
	for i, t := range h.Types {
		if !slices.Contains(event.Types, t) {
			return fault.Invalid(fmt.Sprintf("%s/types/%d", at, i), "unknown type of notification")
		}
	}
	return nil
}

// decodeKeys decodes the keys of an endpoint, each "whsec_" followed by the base64 of its bytes.
func decodeKeys(name string, texts []string) (keys [][]byte, err error) {
	if len(texts) == 0 || len(texts) > maxKeys {
		return nil, fault.Invalid("keys/"+name, "%d keys; one or two are allowed", len(texts))
	}
	for i, text := range texts {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
		if err != nil || len(key) < minKey || len(key) > maxKey {
			return nil, fault.Invalid(fmt.Sprintf("keys/%s/%d", name, i),
				"a key must be whsec_ and the base64 of %d to %d random bytes", minKey, maxKey)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
